#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// The 512 bytes before every HDF5 file of Rondo (FORMATS.md 4). libhdf5 does not survive hostile files, so
/// the checksum is verified before it opens one.
namespace rondo {

inline constexpr std::size_t kUserBlockBytes = 512;

struct UserBlock {
  std::uint32_t version = 1;
  std::string problem_digest;       ///< of problem.json; at most 64 bytes
  std::int64_t round = -1;          ///< -1: not a round file
  std::uint64_t payload_bytes = 0;  ///< length of all that follows the block
  std::string payload_checksum;     ///< XXH3-128 of all that follows, 32 hex digits
};

/// The block of a file in memory, whose first 512 bytes are free: fills in length and checksum.
void seal_user_block(std::vector<char>& file, const std::string& problem_digest, std::int64_t round);

/// Fills length and checksum from the file (whose first 512 bytes are free) and writes the block. Throws
/// Error(cannot_create).
void seal_user_block(const std::filesystem::path& path, const std::string& problem_digest,
                     std::int64_t round);

/// Reads and verifies. Throws Error(no_input), or Error(bad_data) naming what differs.
UserBlock verify_user_block(const std::filesystem::path& path);

}  // namespace rondo
