#include "round_skeleton.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "file_descriptor.hpp"
#include "format_version.hpp"
#include "hdf5_writer.hpp"
#include "rondo/io/user_block.hpp"

namespace rondo {
namespace {

void write_figures(const Hdf5GroupWriter& root, const RoundRecord& record) {
  root.put("format", std::string("rondo-round"));
  root.put("version", std::int64_t{version_of(record)});
  root.put("round", record.round);
  root.put("chunks", record.chunks);
  root.put("begin_us", record.begin_us);
  root.put("end_us", record.end_us);
  root.put("finish_before_us", record.finish_before_us);
  root.put("finish_after_us", record.finish_after_us);
  root.put("bound_us", record.bound_us);
}

template <class Value>
std::vector<Value> values_of(const std::vector<RoundPart>& parts, Value RoundPart::*member) {
  std::vector<Value> values;
  for (const RoundPart& part : parts) values.push_back(part.*member);
  return values;
}

void write_parts(const Hdf5GroupWriter& group, const std::vector<RoundPart>& parts) {
  std::vector<std::int64_t> ranks;
  for (const RoundPart& part : parts) ranks.push_back(part.rank);
  group.put_array("name", values_of(parts, &RoundPart::name));
  group.put_array("outcome", values_of(parts, &RoundPart::outcome));
  group.put_array("rank", ranks, H5T_STD_I32LE);
  group.put_array("seconds", values_of(parts, &RoundPart::seconds), "s");
  group.put_array("columns", values_of(parts, &RoundPart::columns), H5T_STD_I64LE);
  group.put_array("rows", values_of(parts, &RoundPart::rows), H5T_STD_I64LE);
  group.put_array("nodes", values_of(parts, &RoundPart::nodes), H5T_STD_I64LE);
  group.put_array("iterations", values_of(parts, &RoundPart::iterations), H5T_STD_I64LE);
  group.put_array("transfers_changed", values_of(parts, &RoundPart::transfers_changed), H5T_STD_I64LE);
  group.put_array("objective_before", values_of(parts, &RoundPart::objective_before), "");
  group.put_array("objective_after", values_of(parts, &RoundPart::objective_after), "");
}

/// Returns where the rows of each column will lie.
std::vector<std::uint64_t> allocate_columns(const Hdf5GroupWriter& root,
                                            const std::vector<RoundColumn>& columns) {
  std::vector<std::uint64_t> offsets;
  for (std::size_t begin = 0; begin < columns.size();) {
    const std::string& name = columns[begin].group;
    const Hdf5GroupWriter group = root.create_group(name);
    for (; begin < columns.size() && columns[begin].group == name; ++begin) {
      const RoundColumn& column = columns[begin];
      offsets.push_back(group.allocate_array(column.name, column.num_rows, column.type, column.units));
    }
  }
  return offsets;
}

/// All of `image` that no column covers.
std::vector<RoundSkeleton::Piece> pieces_between(const std::vector<char>& image,
                                                 const std::vector<RoundColumn>& columns,
                                                 const std::vector<std::uint64_t>& offsets) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> covered;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].num_rows > 0) covered.emplace_back(offsets[c], offsets[c] + columns[c].num_bytes());
  }
  covered.emplace_back(image.size(), image.size());
  std::sort(covered.begin(), covered.end());
  std::vector<RoundSkeleton::Piece> pieces;
  std::uint64_t at = 0;
  for (const auto& [begin, end] : covered) {
    if (begin > at) pieces.push_back({.offset = at, .bytes = {image.data() + at, image.data() + begin}});
    at = end;
  }
  return pieces;
}

}  // namespace

RoundSkeleton make_round_skeleton(const RoundRecord& record, const std::vector<RoundColumn>& columns) {
  const Hdf5Image image(kUserBlockBytes);
  const Hdf5GroupWriter root = image.root();
  write_figures(root, record);
  write_parts(root.create_group("parts"), record.parts);
  root.create_group("state").put("time_us", record.state.time_us);
  std::vector<std::uint64_t> offsets = allocate_columns(root, columns);
  const std::vector<char> bytes = image.bytes();
  return {.file_bytes = bytes.size(),
          .pieces = pieces_between(bytes, columns, offsets),
          .offsets = std::move(offsets)};
}

std::vector<char> with_rows(const RoundSkeleton& skeleton, const std::vector<RoundColumn>& columns) {
  std::vector<char> file(skeleton.file_bytes);
  const auto put = [&](std::uint64_t offset, const std::vector<char>& bytes) {
    std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  for (const RoundSkeleton::Piece& piece : skeleton.pieces) put(piece.offset, piece.bytes);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    put(skeleton.offsets[c], columns[c].pack({.first = 0, .end = columns[c].num_rows}));
  }
  return file;
}

void write_skeleton(const RoundSkeleton& skeleton, const std::filesystem::path& path,
                    const std::filesystem::path& shown) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) throw_system_error(ExitCode::cannot_create, "cannot write", shown, errno);
  reserve_space(file, skeleton.file_bytes, shown);
  for (const RoundSkeleton::Piece& piece : skeleton.pieces) {
    move_to(file, piece.offset, shown);
    write_all(file, piece.bytes.data(), piece.bytes.size(), shown);
  }
  // Its final length, also where no space could be reserved and rows lie at the end.
  if (::ftruncate(file.get(), static_cast<off_t>(skeleton.file_bytes)) != 0) {
    throw_system_error(ExitCode::cannot_create, "cannot write", shown, errno);
  }
}

void check_round_file(const RoundSkeleton& skeleton, const std::vector<RoundColumn>& columns,
                      const std::filesystem::path& path, const std::filesystem::path& shown) {
  constexpr std::size_t kRowsAtOnce = std::size_t{1} << 16;
  const auto differs = [&](const std::string& place) {
    return Error(ExitCode::cannot_create,
                 fmt::format("cannot write '{}': what was read back of {} differs from what was written",
                             shown.string(), place));
  };
  const FileDescriptor file = open_for_reading(path);
  flush_to_disk(file, shown);
  if (std::filesystem::file_size(path) != skeleton.file_bytes) throw differs("its length");
  for (const RoundSkeleton::Piece& piece : skeleton.pieces) {
    // The user block is sealed by others and has a checksum of its own.
    const std::size_t skipped = piece.offset == 0 ? kUserBlockBytes : 0;
    if (!holds(file, piece.offset + skipped, piece.bytes.data() + skipped, piece.bytes.size() - skipped,
               path)) {
      throw differs("the structure");
    }
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (RowRange rows; rows.first < columns[c].num_rows; rows.first = rows.end) {
      rows.end = std::min(columns[c].num_rows, rows.first + kRowsAtOnce);
      const std::uint64_t offset = skeleton.offsets[c] + std::uint64_t{columns[c].width} * rows.first;
      const std::vector<char> expected = columns[c].pack(rows);
      if (!holds(file, offset, expected.data(), expected.size(), path)) throw differs(columns[c].place());
    }
  }
}

}  // namespace rondo
