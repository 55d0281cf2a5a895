#include "rondo/io/files.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cerrno>
#include <system_error>

#include "file_descriptor.hpp"
#include "temporary_file.hpp"

namespace rondo {

namespace fs = std::filesystem;

std::string read_text_file(const fs::path& path, std::uintmax_t max_bytes) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  const FileDescriptor file = open_for_reading(path);
  std::string text;
  for (std::size_t count = kPieceBytes; count == kPieceBytes;) {  // pipes do not know their size
    const std::size_t before = text.size();
    text.resize(before + kPieceBytes);
    count = read_some(file, text.data() + before, kPieceBytes, path);
    text.resize(before + count);
    if (text.size() > max_bytes) {
      throw Error(ExitCode::unavailable, fmt::format("'{}' is larger than {} bytes, the most that is read",
                                                     path.string(), max_bytes));
    }
  }
  return text;
}

void write_atomically(const fs::path& path, const std::function<void(const fs::path& temporary)>& write) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw_system_error(ExitCode::cannot_create, "cannot write", path, EISDIR);
  }
  TemporaryFile temporary(path);
  write(temporary.path());
  temporary.become(path);
}

void write_text_file(const fs::path& path, const std::string& text) {
  write_atomically(path,
                   [&](const fs::path& temporary) { write_file(temporary, text.data(), text.size(), path); });
}

std::string digest_of(const void* data, std::size_t size) {
  return fmt::format("{:016x}", XXH3_64bits(data, size));
}

std::string digest_of(const std::string& text) {
  return digest_of(text.data(), text.size());
}

}  // namespace rondo
