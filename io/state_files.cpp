#include "rondo/io/state_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>

#include "file_descriptor.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/user_block.hpp"
#include "temporary_file.hpp"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr int kKept = 2;
constexpr std::string_view kExtension = ".state";

fs::path states_folder(const fs::path& folder) {
  return folder / "states";
}

struct StateName {
  std::string name;
  std::int64_t number = 0;
  auto operator<=>(const StateName&) const = default;
};

/// Nothing for files of other names.
std::optional<StateName> parse_name(const fs::path& file) {
  const std::string text = file.filename().string();
  const std::size_t dash = text.rfind('-');
  if (dash == std::string::npos || !text.ends_with(kExtension)) return std::nullopt;
  StateName found{.name = text.substr(0, dash)};
  const char* end = text.data() + text.size() - kExtension.size();
  if (std::from_chars(text.data() + dash + 1, end, found.number).ec != std::errc{}) return std::nullopt;
  if (found.number < 0 || state_file_path("", found.name, found.number).filename() != file.filename()) {
    return std::nullopt;
  }
  return found;
}

/// Sorted by name, then number.
std::vector<StateName> list(const fs::path& folder) {
  std::vector<StateName> found;
  std::error_code error;
  fs::directory_iterator entry(states_folder(folder), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (auto name = parse_name(entry->path())) found.push_back(std::move(*name));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_system_error(ExitCode::io, "cannot list", states_folder(folder), error.value());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Of one name, ascending.
std::vector<std::int64_t> numbers_of(const fs::path& folder, const std::string& name) {
  std::vector<std::int64_t> numbers;
  for (const StateName& found : list(folder)) {
    if (found.name == name) numbers.push_back(found.number);
  }
  return numbers;
}

Bytes read_state(const fs::path& path, const std::string& problem_digest, std::int64_t number) {
  const UserBlock block = verify_user_block(path);
  if (block.problem_digest != problem_digest || block.round != number) {
    throw Error(ExitCode::bad_data,
                fmt::format("'{}': belongs to another problem or is another file's copy", path.string()));
  }
  const std::string text = read_text_file(path);
  return to_bytes(text.substr(kUserBlockBytes));
}

/// The state if it is whole; else nothing, and why in `damaged`.
std::optional<Bytes> read_if_whole(const fs::path& path, const std::string& problem_digest,
                                   std::int64_t number, std::vector<std::string>& damaged) {
  try {
    return read_state(path, problem_digest, number);
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_data && error.code() != ExitCode::no_input) throw;
    damaged.emplace_back(error.what());
    return std::nullopt;
  }
}

}  // namespace

fs::path state_file_path(const fs::path& folder, const std::string& name, std::int64_t number) {
  return states_folder(folder) / fmt::format("{}-{:05}{}", name, number, kExtension);
}

void write_state_file(const fs::path& folder, const std::string& name, const std::string& problem_digest,
                      const Bytes& state) {
  make_folder(states_folder(folder));
  const std::vector<std::int64_t> before = numbers_of(folder, name);
  const std::int64_t number = before.empty() ? 0 : before.back() + 1;
  std::vector<char> file(kUserBlockBytes + state.size());
  if (!state.empty()) std::memcpy(file.data() + kUserBlockBytes, state.data(), state.size());
  seal_user_block(file, problem_digest, number);
  write_atomically(state_file_path(folder, name, number), {file.data(), file.size()});
  for (std::size_t i = 0; i + kKept <= before.size(); ++i)
    remove_file(state_file_path(folder, name, before[i]));
}

FoundState read_newest_state(const fs::path& folder, const std::string& name,
                             const std::string& problem_digest) {
  FoundState found;
  const std::vector<std::int64_t> numbers = numbers_of(folder, name);
  for (auto number = numbers.rbegin(); number != numbers.rend() && !found.state; ++number) {
    found.state =
        read_if_whole(state_file_path(folder, name, *number), problem_digest, *number, found.damaged);
    if (found.state) found.number = *number;
  }
  return found;
}

std::vector<std::string> find_damaged_states(const fs::path& folder, const std::string& name,
                                             const std::string& problem_digest) {
  std::vector<std::string> damaged;
  for (const std::int64_t number : numbers_of(folder, name)) {
    read_if_whole(state_file_path(folder, name, number), problem_digest, number, damaged);
  }
  return damaged;
}

std::vector<std::string> list_states(const fs::path& folder) {
  std::vector<std::string> names;
  for (const StateName& found : list(folder)) {
    if (names.empty() || names.back() != found.name) names.push_back(found.name);
  }
  return names;
}

void remove_state_files(const fs::path& folder) {
  const std::vector<StateName> found = list(folder);
  // The newest last: what an interrupted call leaves is a state that once was.
  for (const StateName& state : found) remove_file(state_file_path(folder, state.name, state.number));
  remove_temporary_files(states_folder(folder));
  if (::rmdir(states_folder(folder).c_str()) == 0) sync_folder(folder, states_folder(folder));
}

}  // namespace rondo
