#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
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
  std::mt19937_64 random;

  /// From least to most, both possible.
  std::size_t number(std::size_t least, std::size_t most);
  double fraction() { return std::uniform_real_distribution<double>(0, 1)(random); }
};

/// A problem that keeps rondo busy for a second or more.
struct Problem {
  std::string name;
  Words arguments;
  std::string digest = {};  ///< of the undisturbed run
  double seconds = 0;       ///< that it took
};
/// The engines whose long phases keep states, each solved once without a disturbance.
std::vector<Problem> problems(Campaign& campaign);

struct Ending {
  int code = 0;  ///< 128 + the signal where there was one; -1 when it hung and was ended
  double seconds = 0;
  std::string err;
};

/// rondo at work, under mpirun on more than one rank.
class Process {
 public:
  Process(const Campaign& campaign, const Words& arguments, int ranks);
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
  fs::path err_;
};

Ending run(const Campaign& campaign, const Words& arguments, int ranks = 1);

void sleep_s(double seconds);
Words joined(Words words, const Words& more);
std::string text_of(const fs::path& file);
/// "schedule_digest" of the folder's report; "" where there is none.
std::string digest_of_run(const fs::path& run);
/// A number of the folder's report.
double figure_of_run(const fs::path& run, const std::string& name);
std::size_t num_round_files(const fs::path& run);

/// Counts what went wrong and says it.
class Findings {
 public:
  /// Prints `what` if `good` does not hold.
  bool expect(bool good, const std::string& what);
  int count() const { return count_; }

 private:
  int count_ = 0;
};

/// Each prints what it did and returns how many findings there were.
int kill_campaign(Campaign& campaign);
int signal_campaign(Campaign& campaign);
int damage_campaign(Campaign& campaign);
int disk_campaign(Campaign& campaign);

}  // namespace rondo::soak
