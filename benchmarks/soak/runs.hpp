#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

/// What all campaigns share: real runs of rondo that are started, disturbed and resumed.
namespace rondo::soak {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A campaign that cannot be run here (exit code 77).
struct Skip {
  std::string reason;
};

struct Campaign {
  fs::path rondo;
  fs::path folder;  ///< of its own, empty
  int count = 0;
  double seconds = 0;  ///< after which it ends sooner; 0: it does not
  int done = 0;        ///< disturbances
  std::string only;    ///< the name of a problem; "": all of them
  std::mt19937_64 random;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  /// Whether there is to be another disturbance, which this counts.
  bool next();
  /// From least to most, both possible.
  std::size_t number(std::size_t least, std::size_t most);
  double fraction() { return std::uniform_real_distribution<double>(0, 1)(random); }
};

/// A problem that keeps rondo busy for a second or more.
struct Problem {
  std::string name;
  Words arguments;
  bool is_exact = true;     ///< the same schedule on any number of ranks; else the same finish within 1e-4
  std::string digest = {};  ///< of the undisturbed run; "": not yet solved
  double finish_us = 0;     ///< its
  double seconds = 0;       ///< that it took
};
/// One for each long phase that keeps states, or the one that was asked for.
class Problems {
 public:
  explicit Problems(const Campaign& campaign);
  std::size_t size() const { return all_.size(); }
  /// The one whose turn it is at disturbance i, which is first solved without a disturbance, on two ranks.
  Problem& at(int i);
  /// Where the undisturbed run is.
  fs::path undisturbed(const Problem& problem) const;

 private:
  const Campaign& campaign_;
  std::vector<Problem> all_;
};

struct Ending {
  int code = 0;  ///< 128 + the signal where there was one; -1 when it hung and was ended
  double seconds = 0;
  std::string out;
  std::string err;  ///< with what its processes were doing, when it hung
};

/// rondo at work, under jobs/mpirun.sh on more than one rank.
class Process {
 public:
  Process(const Campaign& campaign, const Words& arguments, int ranks);
  /// Any command; what it prints goes to files in `folder`.
  Process(const fs::path& folder, Words command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  /// The processes of the ranks that have begun.
  std::vector<pid_t> ranks() const;
  bool running();
  Ending wait(double limit_s = 120);

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  fs::path out_;
  fs::path err_;
};

Ending run(const Campaign& campaign, const Words& arguments, int ranks = 1);
/// Throws where the command fails.
void run_tool(const Campaign& campaign, const Words& command);

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start);
void sleep_s(double seconds);
Words joined(Words words, const Words& more);
std::string text_of(const fs::path& file);
/// Whether the folder has the schedule of the undisturbed run.
bool is_solved(const fs::path& run, const Problem& problem);
/// A number of the folder's report.
double figure_of_run(const fs::path& run, const std::string& name);
/// Whether the run that made the folder's report went on from a state.
bool went_on_from_state(const fs::path& run);
std::size_t num_round_files(const fs::path& run);
std::size_t num_states(const fs::path& run);

/// What happened how often, and what of it should not have happened.
class Tally {
 public:
  /// Prints `what` and counts it as a finding if `good` does not hold.
  bool expect(bool good, const std::string& what);
  void count(const std::string& outcome, int more = 1) { counts_[outcome] += more; }
  /// Keeps the largest.
  void largest(const std::string& what, double value);

  int findings() const { return findings_; }
  const std::map<std::string, double>& counts() const { return counts_; }

 private:
  int findings_ = 0;
  std::map<std::string, double> counts_;
};

/// Resumes on so many ranks, and compares with the undisturbed run: the schedule, and that nothing that was
/// finished is done again.
void expect_resumes(Campaign& campaign, const Problem& problem, const fs::path& run_folder, int ranks,
                    const std::string& what, Tally& tally);
/// Whether `outcome` makes up a third of a campaign; of a short one, which luck decides as well, is there at
/// all.
bool says_something(const Campaign& campaign, const Tally& tally, const std::string& outcome);

/// Each disturbs as often as the campaign's count says.
void kill_campaign(Campaign& campaign, Tally& tally);
void signal_campaign(Campaign& campaign, Tally& tally);
void damage_campaign(Campaign& campaign, Tally& tally);
void disk_campaign(Campaign& campaign, Tally& tally);
void power_campaign(Campaign& campaign, Tally& tally);

}  // namespace rondo::soak
