#include <signal.h>

#include <algorithm>
#include <iostream>

#include "runs.hpp"

/// SIGKILL of a random rank at a random time, once or several times; then rondo resume on other numbers of
/// ranks.
namespace rondo::soak {
namespace {

/// How long a run takes changes with what else the machine does: a kill in time lets the next come later, one
/// that came too late makes it come sooner.
constexpr double kLonger = 1.05;

/// What the folder had before a run went on with it.
struct Before {
  bool was_finished;
  std::size_t rounds;
  std::size_t states;
  explicit Before(const fs::path& run)
      : was_finished(fs::exists(run / "report.json")),
        rounds(num_round_files(run)),
        states(num_states(run)) {}
};

/// Starts or goes on with the run, and kills one of its ranks somewhere in the time that a whole run takes,
/// the first of them at the earliest when there is one.
void kill_once(Campaign& campaign, Problem& problem, const fs::path& output, int ranks,
               const std::string& what, Tally& tally) {
  const Before before(output);
  const double after_s = campaign.fraction() * problem.seconds;
  const Clock::time_point start = Clock::now();
  Process process(campaign,
                  joined(joined({"solve"}, problem.arguments), {"--resume", "--output", output.string()}),
                  ranks);
  while (process.running() && seconds_since(start) < after_s) sleep_s(0.002);
  std::vector<pid_t> victims;
  while (process.running() && (victims = process.ranks()).empty()) sleep_s(0.002);
  if (!victims.empty()) ::kill(victims[campaign.number(0, victims.size() - 1)], SIGKILL);
  const double until_s = seconds_since(start);
  const Ending ending = process.wait(60);
  tally.expect(ending.code != -1, what + ": hung after the kill\n" + ending.err);
  if (ending.err.find("mpirun.sh: ") != std::string::npos)
    tally.count("in MPI_Init, mpirun ended by mpirun.sh");
  const Before after(output);
  if (after.was_finished) {
    tally.count("too late");
    problem.seconds = std::min(problem.seconds, until_s);
    return;
  }
  problem.seconds *= kLonger;
  tally.count("in mid-run");
  tally.count("of " + problem.name);
  if (after.states > 0) tally.count("with a state kept");
  if (after.rounds > 0) tally.count("with rounds kept");
  tally.expect(after.rounds >= before.rounds, what + ": finished rounds were lost");
}

}  // namespace

void expect_resumes(Campaign& campaign, const Problem& problem, const fs::path& run_folder, int ranks,
                    const std::string& what, Tally& tally) {
  const Before before(run_folder);
  // Before problem.json there is nothing to resume; the same command begins.
  const Words command =
      fs::exists(run_folder / "problem.json")
          ? Words{"resume", run_folder.string()}
          : joined(joined({"solve"}, problem.arguments), {"--resume", "--output", run_folder.string()});
  const Ending ending = run(campaign, command, ranks);
  if (!tally.expect(ending.code == 0,
                    what + ": resume ended with " + std::to_string(ending.code) + "\n" + ending.err)) {
    return;
  }
  tally.expect(is_solved(run_folder, problem), what + ": another schedule");
  if (before.was_finished) return;
  tally.count("resumed on " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"));
  if (before.rounds > 0) {
    const double resumed = figure_of_run(run_folder, "rounds_resumed");
    tally.expect(resumed == static_cast<double>(before.rounds),
                 what + ": " + std::to_string(before.rounds) + " rounds were whole, " +
                     std::to_string(resumed) + " were resumed");
    tally.count("finished rounds kept", static_cast<int>(before.rounds));
    tally.count("finished rounds solved again", static_cast<int>(before.rounds) - static_cast<int>(resumed));
  } else if (before.states > 0) {
    tally.expect(went_on_from_state(run_folder), what + ": began again, though there was a state");
  }
}

void kill_campaign(Campaign& campaign, Tally& tally) {
  constexpr std::size_t kMostInARow = 3;
  Problems problems(campaign);
  const fs::path output = campaign.folder / "killed";
  for (int i = 0; campaign.done < campaign.count; ++i) {
    Problem& problem = problems.at(i);
    fs::remove_all(output);
    const std::string what = problem.name + ", run " + std::to_string(i);
    // Every other run is killed once, the others again while they go on.
    auto in_a_row = static_cast<int>(campaign.number(0, 1) * campaign.number(1, kMostInARow - 1) + 1);
    const int before = campaign.done;
    for (; in_a_row > 0 && !fs::exists(output / "report.json") && campaign.next(); --in_a_row) {
      kill_once(campaign, problem, output, campaign.done % 2 == 0 ? 2 : 4, what, tally);
    }
    if (campaign.done == before) break;  // its time is over
    const int again[] = {1, 2, 4};
    expect_resumes(campaign, problem, output, again[i % 3], what, tally);
    if (i % 10 == 9) std::cout << campaign.done << " kills, " << tally.findings() << " findings" << std::endl;
  }
  tally.expect(says_something(campaign, tally, "in mid-run"),
               "too few runs were killed in time to say anything");
}

}  // namespace rondo::soak
