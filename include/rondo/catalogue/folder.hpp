#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/catalogue/entry.hpp"
#include "rondo/core/schedule.hpp"

/// The files of a catalogue (FORMATS.md, "A catalogue"). Every file is whole or not there, so that a process
/// may be killed at any time. Nothing here is collective.
namespace rondo::catalogue {

class Folder {
 public:
  /// Throws Error(no_input) where there is no catalogue, Error(bad_data) for one of another version.
  static Folder open(std::filesystem::path path);
  /// Makes an empty one where there is none. Throws Error(cannot_create) where other files are in the way.
  static Folder open_or_make(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path schedule_path(const std::string& digest) const;
  /// Throws Error(bad_data), naming its file, where a schedule is gone.
  void check_is_there(const std::string& digest) const;
  std::filesystem::path cell_path(const Series& series, double size_bytes) const;
  std::filesystem::path index_path() const;
  std::filesystem::path tuned_path(const Series& series) const;
  /// Where a tuning at one size keeps its measurements.
  std::filesystem::path tuning_path(const Series& series, double size_bytes) const;

  /// Fingerprints, sorted.
  std::vector<std::string> fabrics() const;
  /// Throws Error(bad_data) where the file is gone, damaged or of another fabric.
  std::shared_ptr<const Topology> fabric(const std::string& fingerprint) const;
  /// Returns its fingerprint.
  std::string add_fabric(const Topology& topology) const;

  void remove_fabric(const std::string& fingerprint) const;

  /// By collective, then by the name of its folder.
  std::vector<Series> all_series() const;
  /// Cells with the bins and best schedules where those were found. Throws Error(bad_data), naming the file.
  Table table(const Series& series) const;
  /// As it was made, without what its neighbours' schedules gave; nothing where there is none. Throws
  /// Error(bad_data) for a damaged one, or one whose schedule is gone or damaged.
  std::optional<Cell> made_cell(const Series& series, double size_bytes) const;
  void write(const Series& series, const Cell& cell) const;
  bool has_bins(const Series& series) const;
  /// The bins of an unfinished or extended series are removed before its cells change.
  void remove_bins(const Series& series) const;
  void remove(const Series& series) const;
  void write_bins(const Table& table) const;

  /// Throws Error(bad_data), naming the file, where it is gone or damaged. Whether it is valid is for
  /// verify().
  std::shared_ptr<const ProvenSchedule> schedule(const std::string& digest) const;
  /// Returns its digest.
  std::string add_schedule(const ProvenSchedule& proven) const;
  /// Digests of all schedule files, sorted.
  std::vector<std::string> schedules() const;

 private:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path series_path(const Series& series) const;
  void keep_in_memory(const std::string& digest, std::shared_ptr<const ProvenSchedule> proven) const;

  std::filesystem::path path_;
  /// Of this process alone: files that it has read whole, or written.
  mutable std::map<std::string, std::shared_ptr<const ProvenSchedule>> read_;
};

}  // namespace rondo::catalogue
