#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "round_columns.hpp"

namespace rondo {

/// A round file less the rows of its columns, whose places are fixed: what one rank puts down before all
/// write into it. It is built in memory, so that libhdf5 meets a file on the disk only once that has its
/// final length and all its space.
struct RoundSkeleton {
  struct Piece {
    std::uint64_t offset = 0;
    std::vector<char> bytes = {};
  };
  std::uint64_t file_bytes = 0;
  std::vector<Piece> pieces = {};           ///< all that is not a row, in the order of the file
  std::vector<std::uint64_t> offsets = {};  ///< where the rows of each column begin; 0 for columns without
};

RoundSkeleton make_round_skeleton(const RoundRecord& record, const std::vector<RoundColumn>& columns);

/// The whole file less its user block's content, the rows included.
std::vector<char> with_rows(const RoundSkeleton& skeleton, const std::vector<RoundColumn>& columns);

/// Writes the pieces into the file at `path`, which exists and is empty, its space reserved first; `shown` is
/// the path for messages. Throws Error(cannot_create).
void write_skeleton(const RoundSkeleton& skeleton, const std::filesystem::path& path,
                    const std::filesystem::path& shown);

/// Reads the file at `path` and compares all but the user block with what was meant. Throws
/// Error(cannot_create) where it differs, Error(io) where it cannot be read.
void check_round_file(const RoundSkeleton& skeleton, const std::vector<RoundColumn>& columns,
                      const std::filesystem::path& path, const std::filesystem::path& shown);

}  // namespace rondo
