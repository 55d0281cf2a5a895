#include <signal.h>

#include <algorithm>
#include <iostream>

#include "runs.hpp"

/// SIGKILL of a random rank at a random time, and signals that ask a run to stop; then rondo resume on other
/// numbers of ranks.
namespace rondo::soak {
namespace {

constexpr int kStopped = 75;
constexpr double kStopSeconds = 10;

/// Resumes, and compares with the undisturbed run.
void expect_resumes(Campaign& campaign, const Problem& problem, const fs::path& run_folder, int ranks,
                    const std::string& what, Findings& findings) {
  const bool was_finished = fs::exists(run_folder / "report.json");
  const std::size_t before = num_round_files(run_folder);
  // Before problem.json there is nothing to resume; the same command begins.
  const Words command =
      fs::exists(run_folder / "problem.json")
          ? Words{"resume", run_folder.string()}
          : joined(joined({"solve"}, problem.arguments), {"--resume", "--output", run_folder.string()});
  const Ending ending = run(campaign, command, ranks);
  if (!findings.expect(ending.code == 0,
                       what + ": resume ended with " + std::to_string(ending.code) + "\n" + ending.err)) {
    return;
  }
  findings.expect(digest_of_run(run_folder) == problem.digest, what + ": another schedule");
  if (problem.name == "rounds" && !was_finished) {
    const double resumed = figure_of_run(run_folder, "rounds_resumed");
    findings.expect(resumed == static_cast<double>(before), what + ": " + std::to_string(before) +
                                                                " rounds were whole, " +
                                                                std::to_string(resumed) + " were resumed");
  }
}

/// Runs take less time than the first one did, or the machine is less busy: then the next ones are disturbed
/// earlier.
void came_too_late(Problem& problem, double after_s) {
  problem.seconds = std::min(problem.seconds, 0.8 * after_s);
}

/// A third of a campaign; of a short one, which luck decides as well, a single run.
bool says_something(int disturbed, int count) {
  constexpr int kShort = 20;
  return count < kShort ? disturbed > 0 : disturbed * 3 >= count;
}

}  // namespace

int kill_campaign(Campaign& campaign) {
  std::vector<Problem> all = problems(campaign);
  Findings findings;
  int in_mid_run = 0;
  std::size_t kept = 0;
  for (int i = 0; i < campaign.count; ++i) {
    Problem& problem = all[static_cast<std::size_t>(i) % all.size()];
    const int ranks = i / 2 % 2 == 0 ? 2 : 4;
    const fs::path output = campaign.folder / "killed";
    fs::remove_all(output);
    std::string what =
        "kill " + std::to_string(i) + " (" + problem.name + ", " + std::to_string(ranks) + " ranks)";
    const double after_s = campaign.fraction() * problem.seconds * 0.6;  // several ranks take less than one
    {
      Process process(campaign, joined(joined({"solve"}, problem.arguments), {"--output", output.string()}),
                      ranks);
      sleep_s(after_s);
      const std::vector<pid_t> victims = process.ranks();
      if (!victims.empty()) ::kill(victims[campaign.number(0, victims.size() - 1)], SIGKILL);
      findings.expect(process.wait(60).code != -1, what + ": hung after the kill");
    }
    if (!fs::exists(output / "report.json")) {
      ++in_mid_run;
      kept += num_round_files(output);
    } else {
      came_too_late(problem, after_s);
    }
    const int again[] = {1, 2, 4};
    expect_resumes(campaign, problem, output, again[campaign.number(0, 2)], what, findings);
    if (i % 20 == 19) std::cout << i + 1 << " kills, " << findings.count() << " findings" << std::endl;
  }
  std::cout << campaign.count << " SIGKILLs, " << in_mid_run << " before the run had ended, " << kept
            << " finished rounds kept and none solved again, all resumed to the undisturbed schedule: "
            << (findings.count() == 0 ? "yes" : "NO") << std::endl;
  findings.expect(says_something(in_mid_run, campaign.count),
                  "too few runs were killed in time to say anything");
  return findings.count();
}

int signal_campaign(Campaign& campaign) {
  std::vector<Problem> all = problems(campaign);
  Findings findings;
  int stopped = 0;
  double longest_s = 0;
  for (int i = 0; i < campaign.count; ++i) {
    Problem& problem = all[static_cast<std::size_t>(i) % all.size()];
    const bool many = i / 2 % 2 == 1;
    const int signal = many || i / 4 % 2 == 0 ? SIGUSR1 : SIGTERM;  // mpirun gives its ranks no time on TERM
    const fs::path output = campaign.folder / "stopped";
    fs::remove_all(output);
    const std::string what = "signal " + std::to_string(i) + " (" + problem.name + ")";
    {
      Process process(campaign, joined(joined({"solve"}, problem.arguments), {"--output", output.string()}),
                      many ? 2 : 1);
      // From the lock on: before that there is neither a folder nor anything to lose.
      while (process.running() && !fs::exists(output / "lock")) sleep_s(0.002);
      const double after_s = campaign.fraction() * problem.seconds;
      sleep_s(after_s);
      process.signal(signal);
      const Ending ending = process.wait(30);
      longest_s = std::max(longest_s, ending.seconds);
      const bool finished = fs::exists(output / "report.json");
      if (finished) {
        came_too_late(problem, after_s);
      } else {
        ++stopped;
      }
      findings.expect(ending.code == (finished ? 0 : kStopped) && ending.seconds < kStopSeconds,
                      what + ": code " + std::to_string(ending.code) + " after " +
                          std::to_string(ending.seconds) + " s\n" + ending.err);
    }
    expect_resumes(campaign, problem, output, many ? 1 : 2, what, findings);
  }
  std::cout << campaign.count << " signals, " << stopped << " runs stopped with code 75, the longest took "
            << longest_s
            << " s, all resumed to the undisturbed schedule: " << (findings.count() == 0 ? "yes" : "NO")
            << std::endl;
  findings.expect(says_something(stopped, campaign.count),
                  "too few runs were stopped in time to say anything");
  return findings.count();
}

}  // namespace rondo::soak
