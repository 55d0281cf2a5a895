#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "rondo/core/schedule.hpp"

/// Schedules as HDF5 (FORMATS.md 3) behind a user block (FORMATS.md 4).
namespace rondo {

/// Writes whole or not at all. `problem_digest` is the digest of problem.json that goes into the user block.
/// Throws Error(cannot_create).
void write_schedule_hdf5(const std::filesystem::path& path, const ProvenSchedule& proven,
                         const std::string& problem_digest);

/// The sends of a schedule in their order, some at a call; none: that was all. They stay valid until the next
/// call.
using SendBlocks = std::function<std::span<const Send>()>;

/// The same for `num_sends` sends, without transfer numbers and rates, that are nowhere all at once; those in
/// `proven` are some of them.
void write_schedule_hdf5(const std::filesystem::path& path, const ProvenSchedule& proven,
                         std::size_t num_sends, const SendBlocks& blocks, const std::string& problem_digest);

/// Checks magic, version, length and checksum of the user block before HDF5 sees the file, then every size
/// against the file's own length. Throws Error(no_input), Error(bad_data).
ProvenSchedule read_schedule_hdf5(const std::filesystem::path& path);

/// Digest of a schedule's content alone: origins, destinations and bytes of the chunks, then the sends, in
/// file order, doubles by their bits (little-endian); where there are any, the chunks' several sources, sums
/// and what is held, and the transfers and rates of the sends.
std::string schedule_digest(const Demand& demand, const Schedule& schedule);

class Digest;

/// The same of sends that come some at a time.
class ScheduleDigest {
 public:
  explicit ScheduleDigest(const Demand& demand);
  ~ScheduleDigest();
  /// The next ones, in the order of schedules.
  void add(std::span<const Send> sends);
  /// After the last ones; all sends again where some have transfer numbers or rates.
  std::string text(const std::vector<Send>& numbered = {});

 private:
  const Demand& demand_;
  std::unique_ptr<Digest> digest_;
};

}  // namespace rondo
