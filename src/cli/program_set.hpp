#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rondo/catalogue/folder.hpp"
#include "rondo/io/json_files.hpp"

/// A series of a catalogue as programs for an executor, each for the sizes that it is the best for.
namespace rondo::cli {

/// Sizes of messages, both inclusive.
struct ByteRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
/// Programs serve sizes up to this: executors do not all know "no limit".
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

/// The text of a program of a schedule for these sizes. Throws Error(unavailable) beyond a cap of the
/// executor.
using WriteProgram = std::function<std::string(const ProvenSchedule& proven, const ByteRange& range)>;

struct SetProgram {
  std::string schedule;
  ByteRange range;
  std::string text;
};

struct ProgramSet {
  std::vector<SetProgram> programs = {};  ///< by size
  std::vector<std::string> remarks = {};  ///< which schedules are left out, why, and what that costs
  double largest_loss = 0;                ///< of a cell of the catalogue, by schedules that are left out
};

/// The best programs that the executor takes, at most `most` of them (none: any number). Throws
/// Error(unavailable) where it takes none of the series' schedules.
ProgramSet program_set(const catalogue::Folder& folder, const catalogue::Table& table,
                       std::optional<std::size_t> most, const WriteProgram& write);

/// Throws Error(internal) where ranges overlap, or where they leave sizes from 0 to kMostBytes out.
void check_cover(const std::vector<ByteRange>& ranges, const std::string& what);

}  // namespace rondo::cli
