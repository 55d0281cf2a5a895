#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rondo/catalogue/folder.hpp"
#include "rondo/core/ids.hpp"

/// Repairs that a catalogue has ready, for links that fail while one of its schedules is running (FORMATS.md,
/// "A catalogue"). `rondo repair --all-single-failures --catalogue` makes them. Nothing here is collective.
namespace rondo::catalogue {

/// Which schedule is running, and when links fail.
struct Running {
  std::string fabric;  ///< fingerprint
  std::string digest;  ///< of the schedule as it is timed at its size
  double at_us = 0;
};

/// The folder of all repairs of one schedule at one time. Made, with those above, where it is missing.
std::filesystem::path make_repairs_folder(const Folder& folder, const Running& running);

/// When links may fail so that there are repairs of this schedule, ascending; only finished tables.
std::vector<double> repair_times(const Folder& folder, const std::string& fabric, const std::string& digest);

struct PreparedRepair {
  std::filesystem::path rest = {};  ///< what is left to do then; empty where nothing is, or `refused`
  double whole_finish_us = 0;       ///< from the begin of the schedule that was running
  double finish_us = 0;             ///< of the rest
  double lower_bound_us = 0;
  std::string digest = {};  ///< of the rest
  std::string made_by = {};
  std::string refused = {};  ///< why there is no repair
};
/// Where the links between two nodes fail. Throws Error(no_input) naming what there is, Error(bad_data) where
/// a file is gone or damaged.
PreparedRepair find_repair(const Folder& folder, const Running& running, NodeId a, NodeId b);
/// All repairs of one time, in order of nodes.
std::vector<PreparedRepair> repairs_at(const Folder& folder, const Running& running);

struct VerifiedRepairs {
  std::size_t repairs = 0;
  std::vector<std::string> faults = {};
};
/// Every rest replayed and its bound derived; it and the other files say the same.
VerifiedRepairs verify_repairs(const Folder& folder);

/// Those of fabrics that the catalogue does not have go. Returns how many files there were.
std::size_t prune_repairs(const Folder& folder);
/// Copies the tables of `from` that `folder` has not, of fabrics that it has.
void merge_repairs(const Folder& folder, const Folder& from);

}  // namespace rondo::catalogue
