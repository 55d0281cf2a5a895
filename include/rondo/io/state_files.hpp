#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rondo/parallel/communicator.hpp"

/// States of a run's long phases (FORMATS.md 4): FOLDER/states/NAME-00000.state and so on, each a user block
/// and the bytes that the phase gave. Nothing here is collective.
namespace rondo {

/// FOLDER/states/NAME-NNNNN.state.
std::filesystem::path state_file_path(const std::filesystem::path& folder, const std::string& name,
                                      std::int64_t number);

/// Writes the state whole or not at all under the next number, then removes all but the one before it: what
/// has gone bad by the next start still has a predecessor. FOLDER/states is made where it is missing. Throws
/// Error(cannot_create).
void write_state_file(const std::filesystem::path& folder, const std::string& name,
                      const std::string& problem_digest, const Bytes& state);

struct FoundState {
  std::optional<Bytes> state = std::nullopt;  ///< the newest that is whole and of this problem
  std::int64_t number = -1;                   ///< its
  std::vector<std::string> damaged = {};      ///< why newer ones are not used, one sentence each
};
/// Throws Error(io) for files that cannot be read at all.
FoundState read_newest_state(const std::filesystem::path& folder, const std::string& name,
                             const std::string& problem_digest);

/// Why states of this name cannot be used, those that a newer one has superseded included: one sentence each.
/// Throws Error(io).
std::vector<std::string> find_damaged_states(const std::filesystem::path& folder, const std::string& name,
                                             const std::string& problem_digest);

/// The names that there are states of, sorted.
std::vector<std::string> list_states(const std::filesystem::path& folder);

/// Removes all states and what killed runs left beside them. Throws Error(cannot_create).
void remove_state_files(const std::filesystem::path& folder);

}  // namespace rondo
