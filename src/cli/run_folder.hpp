#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/run_lock.hpp"
#include "rondo/io/schedule_hdf5.hpp"

/// The folder of a run (FORMATS.md 4): problem.json, schedule.h5, report.json; rounds, states and `lock`
/// while it is at work.
namespace rondo::cli {

/// A folder that one run at a time holds. For the root rank. problem.json is written first and report.json
/// last: a folder without that is unfinished.
class RunFolder {
 public:
  /// Creates the folder and its lock, which shows that it can be written before hours are spent, and removes
  /// what killed runs left half-written. `notice` is told when the lock takes a while. Throws
  /// Error(cannot_create) when it cannot, when another run holds the lock, or when it has files that are not
  /// of a run.
  explicit RunFolder(std::filesystem::path path,
                     const std::function<void(const std::string& line)>& notice = {});
  /// Removes the lock, and the folders that this made when nothing came into them.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// The report of a finished and valid run of this very problem; nothing where no run has finished. Throws
  /// Error(bad_data) when the folder is of another problem (naming the first difference) or its result is
  /// damaged.
  std::optional<Json> finished_report(const Json& problem) const;

  /// Whether the folder holds a state to resume from.
  bool is_unfinished() const;
  /// Throws Error(bad_data), naming the first difference, where what is there cannot be gone on with: another
  /// problem, other options, another version of Rondo.
  void check_unfinished(const Json& problem) const;

  /// Removes the result of an earlier run, with `anew` its rounds and states as well, and writes
  /// start.h5, where there is a schedule to begin with, and problem.json, so that what comes next can be
  /// resumed.
  void begin(const Json& problem, bool anew, const ProvenSchedule* start);
  /// Takes begin() back where nothing came of it: for a problem that turned out to be refused.
  void withdraw();
  void write_schedule(const Json& problem, const ProvenSchedule& proven) const;
  /// The same where the sends come block by block. Returns their digest.
  std::string write_schedule(const Json& problem, const ProvenSchedule& proven, std::size_t num_sends,
                             const SendBlocks& blocks) const;
  /// Writes the report, which makes the run a finished one, and removes the states that led to it.
  void finish(const Json& report) const;

  /// Throws Error(cannot_create) when another run has taken the folder over.
  void check_lock() const { lock_->check(); }

 private:
  void make_folders();
  void check_contents() const;
  void remove_result() const;
  void undo();

  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  ///< folders that were not there, outermost first
  std::optional<RunLock> lock_;
  bool wrote_problem_ = false;
};

/// start.h5: the schedule that the run of the problem with this text begins with. Throws Error(no_input),
/// Error(bad_data).
ProvenSchedule read_start(const std::filesystem::path& folder, const std::string& problem_text);

struct CheckedRun {
  ProvenSchedule proven;
  Json report;
};

/// Reads and checks a finished run: its schedule, and that problem and report are of this schedule. Throws
/// Error(no_input) for a missing file and Error(bad_data), naming the file.
CheckedRun check_run(const std::filesystem::path& folder);

}  // namespace rondo::cli
