#include "rondo/io/round_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "file_descriptor.hpp"
#include "hdf5_column_writer.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/user_block.hpp"
#include "round_columns.hpp"
#include "round_reader.hpp"
#include "round_skeleton.hpp"
#include "temporary_file.hpp"

namespace rondo {
namespace {

namespace fs = std::filesystem;

fs::path rounds_folder(const fs::path& folder) {
  return folder / "rounds";
}

/// A file without its space, or with other content than meant, is a file that could not be written, whichever
/// step noticed.
template <class Step>
void as_cannot_create(const fs::path& shown, Step step) {
  try {
    step();
  } catch (const Error& error) {
    if (error.code() == ExitCode::cannot_create) throw;
    throw Error(ExitCode::cannot_create, fmt::format("cannot write '{}': {}", shown.string(), error.what()));
  }
}

std::uint64_t bytes_of(const std::vector<RoundColumn>& columns) {
  std::uint64_t bytes = 0;
  for (const RoundColumn& column : columns) bytes += column.num_bytes();
  return bytes;
}

/// The number of a round file; nothing for files of other names.
std::optional<std::int64_t> round_of_name(const fs::path& name) {
  const std::string text = name.string();
  constexpr std::string_view kBefore = "round-";
  std::int64_t round = -1;
  if (!text.starts_with(kBefore)) return std::nullopt;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data() + kBefore.size(), end, round).ec != std::errc{}) return std::nullopt;
  if (round < 0 || round_file_path("", round).filename() != name) return std::nullopt;
  return round;
}

/// The numbers of the round files, ascending; none for a folder that does not exist.
std::vector<std::int64_t> list_rounds(const fs::path& folder) {
  std::vector<std::int64_t> rounds;
  std::error_code error;
  fs::directory_iterator entry(rounds_folder(folder), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (const auto round = round_of_name(entry->path().filename())) rounds.push_back(*round);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_system_error(ExitCode::io, "cannot list", rounds_folder(folder), error.value());
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds;
}

/// "" or why `next` cannot follow `rounds`.
std::string why_not_next(const std::vector<RoundRecord>& rounds, const RoundRecord& next) {
  if (next.round != static_cast<std::int64_t>(rounds.size())) {
    return fmt::format("it holds round {}", next.round);
  }
  if (!rounds.empty() && next.begin_us != rounds.back().end_us) {
    return fmt::format("begin_us: {}; the round before ended at {}", next.begin_us, rounds.back().end_us);
  }
  return "";
}

/// Collective.
void write_together(const fs::path& path, const RoundRecord& record, const std::vector<RoundColumn>& columns,
                    const std::string& problem_digest, const Communicator& communicator) {
  // The root's alone:
  RoundSkeleton skeleton;
  std::optional<TemporaryFile> temporary;
  const Bytes name = on_root(communicator, [&] {
    make_folder(folder_of(path));
    skeleton = make_round_skeleton(record, columns);
    temporary.emplace(path);
    as_cannot_create(path, [&] { write_skeleton(skeleton, temporary->path(), path); });
    return to_bytes(temporary->path().string());
  });

  write_columns(columns, to_text(name), path, communicator);

  on_root(communicator, [&] {
    as_cannot_create(path, [&] {
      seal_user_block(temporary->path(), problem_digest, record.round);
      check_round_file(skeleton, columns, temporary->path(), path);
      verify_user_block(temporary->path());
      temporary->become(path);
    });
    return Bytes{};
  });
}

}  // namespace

fs::path round_file_path(const fs::path& folder, std::int64_t round) {
  return rounds_folder(folder) / fmt::format("round-{:05}.h5", round);
}

bool has_rounds(const fs::path& folder) {
  return !list_rounds(folder).empty();
}

void write_round_file(const fs::path& folder, const RoundRecord& record, const std::string& problem_digest,
                      const Communicator& communicator, std::uint64_t together_from) {
  if (const std::string fault = find_fault(record); !fault.empty()) {
    throw Error(ExitCode::internal, fmt::format("no content for a round file: {}", fault));
  }
  const fs::path path = round_file_path(folder, record.round);
  const std::vector<RoundColumn> columns = columns_of(record);
  if (bytes_of(columns) >= together_from) {
    write_together(path, record, columns, problem_digest, communicator);
    return;
  }
  on_root(communicator, [&] {
    make_folder(rounds_folder(folder));
    std::vector<char> file = with_rows(make_round_skeleton(record, columns), columns);
    seal_user_block(file, problem_digest, record.round);
    as_cannot_create(path, [&] { write_atomically(path, {file.data(), file.size()}); });
    return Bytes{};
  });
}

RoundRecord read_round_file(const fs::path& path) {
  return read_round_file_of(path, std::nullopt);
}

RoundPrefix read_round_files(const fs::path& folder, const std::string& problem_digest) {
  RoundPrefix prefix;
  for (const std::int64_t present : list_rounds(folder)) {
    const auto expected = static_cast<std::int64_t>(prefix.rounds.size());
    const fs::path path = round_file_path(folder, expected);
    if (present != expected) {
      prefix.stopped_by = fmt::format("'{}' is missing, though there is '{}'", path.string(),
                                      round_file_path(folder, present).string());
      break;
    }
    try {
      RoundRecord next = read_round_file_of(path, problem_digest);
      if (const std::string reason = why_not_next(prefix.rounds, next); !reason.empty()) {
        prefix.stopped_by = fmt::format("'{}': {}", path.string(), reason);
        break;
      }
      prefix.rounds.push_back(std::move(next));
    } catch (const Error& error) {
      if (error.code() != ExitCode::bad_data && error.code() != ExitCode::no_input) throw;
      prefix.stopped_by = error.what();
      break;
    }
  }
  return prefix;
}

void remove_round_files(const fs::path& folder, std::int64_t first) {
  const std::vector<std::int64_t> rounds = list_rounds(folder);
  for (const std::int64_t round : rounds) {
    if (round >= first) remove_file(round_file_path(folder, round));
  }
  remove_temporary_files(rounds_folder(folder));
  if (!rounds.empty()) sync_folder(rounds_folder(folder), rounds_folder(folder));
}

}  // namespace rondo
