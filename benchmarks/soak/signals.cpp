#include <signal.h>

#include <algorithm>
#include <iostream>

#include "runs.hpp"

/// Signals that ask a run to stop, to whom a batch system sends them; then rondo resume.
namespace rondo::soak {
namespace {

constexpr int kStopped = 75;
constexpr double kStopSeconds = 10;

constexpr double kAtOnceSeconds = 2;

/// Of a signal that comes too late, sooner each time: how long a run takes depends on what else the machine
/// does.
constexpr int kMostTries = 6;

struct Path {
  std::string name;
  int ranks;
  double within_s;
  void (*send)(const Process& process, Campaign& campaign);
};

void to_all_ranks(const Process& process, int number) {
  for (const pid_t rank : process.ranks()) ::kill(rank, number);
}

/// mpirun gives its ranks no time on TERM: that is for the ranks themselves, as srun sends it.
const Path kPaths[] = {
    {"USR1 to one process", 1, kStopSeconds,
     [](const Process& process, Campaign&) { process.signal(SIGUSR1); }},
    {"USR1 to mpirun", 2, kStopSeconds, [](const Process& process, Campaign&) { process.signal(SIGUSR1); }},
    {"TERM to one process", 1, kStopSeconds,
     [](const Process& process, Campaign&) { process.signal(SIGTERM); }},
    {"TERM to all ranks", 4, kStopSeconds,
     [](const Process& process, Campaign&) { to_all_ranks(process, SIGTERM); }},
    {"USR1 to all ranks", 2, kStopSeconds,
     [](const Process& process, Campaign&) { to_all_ranks(process, SIGUSR1); }},
    {"TERM to one of several ranks", 2, kStopSeconds,
     [](const Process& process, Campaign& campaign) {
       const std::vector<pid_t> ranks = process.ranks();
       if (!ranks.empty()) ::kill(ranks[campaign.number(0, ranks.size() - 1)], SIGTERM);
     }},
    {"USR1, then TERM: at once", 1, kAtOnceSeconds, [](const Process& process, Campaign&) {
       process.signal(SIGUSR1);
       sleep_s(0.005);
       process.signal(SIGTERM);
     }}};

/// Starts a run and sends it a signal. Returns whether that stopped it.
bool is_stopped(Campaign& campaign, Problem& problem, const Path& path, const fs::path& output,
                const std::string& what, Tally& tally) {
  fs::remove_all(output);
  Process process(campaign, joined(joined({"solve"}, problem.arguments), {"--output", output.string()}),
                  path.ranks);
  // From the lock on: before that there is neither a folder nor anything to lose.
  while (process.running() && !fs::exists(output / "lock")) sleep_s(0.002);
  const double after_s = campaign.fraction() * problem.seconds;
  sleep_s(after_s);
  path.send(process, campaign);
  const Ending ending = process.wait(30);
  const bool finished = fs::exists(output / "report.json");
  if (finished) {
    tally.count("too late");
    problem.seconds = std::max(0.1, std::min(problem.seconds, 0.9 * after_s));
  } else {
    tally.count("stopped with code 75");
    tally.count(path.name);
    tally.largest(path.within_s < kStopSeconds ? "longest seconds to stop at a second signal"
                                               : "longest seconds to stop",
                  ending.seconds);
  }
  tally.expect((ending.code == kStopped || (finished && ending.code == 0)) && ending.seconds < path.within_s,
               what + ": code " + std::to_string(ending.code) + " after " + std::to_string(ending.seconds) +
                   " s\n" + ending.err);
  return !finished;
}

}  // namespace

void signal_campaign(Campaign& campaign, Tally& tally) {
  Problems problems(campaign);
  const fs::path output = campaign.folder / "stopped";
  for (int i = 0; campaign.next(); ++i) {
    Problem& problem = problems.at(i);
    const Path& path = kPaths[static_cast<std::size_t>(i) / problems.size() % std::size(kPaths)];
    const std::string what = std::to_string(i) + ": " + path.name + ", " + problem.name;
    for (int tries = 1; !is_stopped(campaign, problem, path, output, what, tally) && tries < kMostTries;)
      ++tries;
    const int again[] = {2, 1, 4};
    expect_resumes(campaign, problem, output, again[i % 3], what, tally);
  }
  tally.expect(says_something(campaign, tally, "stopped with code 75"),
               "too few runs were stopped in time to say anything");
}

}  // namespace rondo::soak
