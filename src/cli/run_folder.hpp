#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/io/json_files.hpp"

/// The folder of a run (FORMATS.md 4): problem.json, schedule.h5, report.json, and `lock` while it is at
/// work.
namespace rondo::cli {

/// A folder that one run at a time holds. For the root rank. Its files are written when there is a result,
/// report.json last: a folder without it is unfinished.
class RunFolder {
 public:
  /// Creates the folder and its lock, which shows that it can be written before hours are spent. Throws
  /// Error(cannot_create) when it cannot, when another run holds the lock, or when it has files that are not
  /// of a run.
  explicit RunFolder(std::filesystem::path path);
  /// Removes the lock, and the folders that this made when nothing came into them.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// The report of a finished and valid run of this very problem; nothing where no run has finished. Throws
  /// Error(bad_data) when the folder is of another problem (naming the first difference) or its result is
  /// damaged.
  std::optional<Json> finished_report(const Json& problem) const;

  /// Removes the result of an earlier run and writes problem.json, so that what comes next can be resumed.
  void begin(const Json& problem) const;
  /// Replaces what the folder holds.
  void write(const Json& problem, const ProvenSchedule& proven, const Json& report) const;

 private:
  void make_folders();
  void lock();
  void check_contents() const;
  void undo();

  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  ///< folders that were not there, outermost first
  int lock_ = -1;
};

/// The bytes of problem.json and report.json.
std::string file_text(const Json& json);

struct CheckedRun {
  ProvenSchedule proven;
  Json report;
};

/// Reads and checks a finished run: its schedule, and that problem and report are of this schedule. Throws
/// Error(no_input) for a missing file and Error(bad_data), naming the file.
CheckedRun check_run(const std::filesystem::path& folder);

}  // namespace rondo::cli
