#include "rondo/io/user_block.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "file_descriptor.hpp"
#include "rondo/io/files.hpp"

// The block is text, so that `head -n 7` shows it: a magic line, one line a field, a checksum of the lines
// before, and NUL to the end.
namespace rondo {
namespace {

constexpr std::string_view kMagic = "rondo-user-block";
constexpr std::size_t kMaxDigestBytes = 64;

using BlockBytes = std::array<char, kUserBlockBytes>;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& message) {
  throw Error(ExitCode::bad_data, fmt::format("'{}': {}", path.string(), message));
}

BlockBytes to_block_bytes(const UserBlock& block) {
  assert(block.problem_digest.size() <= kMaxDigestBytes);
  assert(block.problem_digest.find('\n') == std::string::npos);
  std::string text = fmt::format(
      "{} {}\nproblem_digest {}\nround {}\npayload_bytes {}\npayload_xxh3_128 {}\n", kMagic, block.version,
      block.problem_digest, block.round, block.payload_bytes, block.payload_checksum);
  text += fmt::format("block_xxh3_64 {}\n", digest_of(text));
  assert(text.size() <= kUserBlockBytes);
  BlockBytes bytes = {};
  text.copy(bytes.data(), bytes.size());
  return bytes;
}

/// Takes "NAME VALUE\n" off the front; nothing where the line is another.
std::optional<std::string> take_line(std::string_view& text, std::string_view name) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name)) return std::nullopt;
  const std::string_view line = text.substr(name.size(), end - name.size());
  if (!line.starts_with(' ')) return std::nullopt;
  text.remove_prefix(end + 1);
  return std::string(line.substr(1));
}

template <class Integer>
bool parse(const std::optional<std::string>& text, Integer& value) {
  if (!text) return false;
  const char* end = text->data() + text->size();
  const auto result = std::from_chars(text->data(), end, value);
  return result.ec == std::errc{} && result.ptr == end;
}

/// Nothing unless the bytes are exactly what to_block_bytes writes, the block's own checksum included.
std::optional<UserBlock> parse_block(const BlockBytes& bytes) {
  std::string_view text(bytes.data(), bytes.size());
  UserBlock block;
  if (!parse(take_line(text, kMagic), block.version)) return std::nullopt;
  const auto digest = take_line(text, "problem_digest");
  if (!digest || digest->size() > kMaxDigestBytes) return std::nullopt;
  block.problem_digest = *digest;
  if (!parse(take_line(text, "round"), block.round)) return std::nullopt;
  if (!parse(take_line(text, "payload_bytes"), block.payload_bytes)) return std::nullopt;
  const auto checksum = take_line(text, "payload_xxh3_128");
  if (!checksum || checksum->size() != 32) return std::nullopt;
  block.payload_checksum = *checksum;
  if (to_block_bytes(block) != bytes) return std::nullopt;
  return block;
}

struct Payload {
  std::uint64_t bytes = 0;
  std::string checksum;
};

std::string hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// Length and XXH3-128 of what follows the file's current position.
Payload read_payload(const FileDescriptor& file, const std::filesystem::path& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  if (!state || XXH3_128bits_reset(state.get()) != XXH_OK) {
    throw Error(ExitCode::internal, "xxHash cannot be initialised");
  }
  Payload payload;
  std::vector<char> piece(std::size_t{1} << 16);
  while (const std::size_t count = read_some(file, piece.data(), piece.size(), path)) {
    XXH3_128bits_update(state.get(), piece.data(), count);
    payload.bytes += count;
  }
  payload.checksum = hex(XXH3_128bits_digest(state.get()));
  return payload;
}

}  // namespace

void seal_user_block(std::vector<char>& file, const std::string& problem_digest, std::int64_t round) {
  assert(file.size() >= kUserBlockBytes);
  const std::size_t payload_bytes = file.size() - kUserBlockBytes;
  const BlockBytes bytes =
      to_block_bytes({.problem_digest = problem_digest,
                      .round = round,
                      .payload_bytes = payload_bytes,
                      .payload_checksum = hex(XXH3_128bits(file.data() + kUserBlockBytes, payload_bytes))});
  std::copy(bytes.begin(), bytes.end(), file.begin());
}

void seal_user_block(const std::filesystem::path& path, const std::string& problem_digest,
                     std::int64_t round) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) throw_system_error(ExitCode::cannot_create, "cannot write", path, errno);
  BlockBytes free_bytes;
  const std::size_t found = read_some(file, free_bytes.data(), free_bytes.size(), path);
  assert(found == kUserBlockBytes);
  static_cast<void>(found);
  Payload payload = read_payload(file, path);
  const BlockBytes bytes = to_block_bytes({.problem_digest = problem_digest,
                                           .round = round,
                                           .payload_bytes = payload.bytes,
                                           .payload_checksum = std::move(payload.checksum)});
  if (::lseek(file.get(), 0, SEEK_SET) != 0) {
    throw_system_error(ExitCode::cannot_create, "cannot write", path, errno);
  }
  write_all(file, bytes.data(), bytes.size(), path);
}

UserBlock verify_user_block(const std::filesystem::path& path) {
  const FileDescriptor file = open_for_reading(path);
  BlockBytes bytes = {};
  const std::size_t found = read_some(file, bytes.data(), bytes.size(), path);
  if (!std::string_view(bytes.data(), found).starts_with(kMagic)) {
    refuse(path, fmt::format("does not begin with '{}': no HDF5 file of Rondo, or its beginning is damaged",
                             kMagic));
  }
  std::uint32_t version = 0;
  std::string_view text(bytes.data(), bytes.size());
  if (parse(take_line(text, kMagic), version) && version != UserBlock{}.version) {
    refuse(path,
           fmt::format("user block version {}; this program reads version {}", version, UserBlock{}.version));
  }
  const std::optional<UserBlock> block = parse_block(bytes);
  if (!block)
    refuse(path, "its user block (the first 512 bytes) is damaged; restore the file or solve again");
  const Payload payload = read_payload(file, path);
  if (payload.bytes != block->payload_bytes) {
    refuse(path, fmt::format(
                     "{} bytes follow the user block, which states {}; the file is truncated or was changed",
                     payload.bytes, block->payload_bytes));
  }
  if (payload.checksum != block->payload_checksum) {
    refuse(path,
           fmt::format("checksum {} differs from {} in the user block; the file is corrupted, restore it or "
                       "solve again",
                       payload.checksum, block->payload_checksum));
  }
  return *block;
}

}  // namespace rondo
