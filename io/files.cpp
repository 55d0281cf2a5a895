#include "rondo/io/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>

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

void write_atomically(const fs::path& path, std::string_view bytes) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw_system_error(ExitCode::cannot_create, "cannot write", path, EISDIR);
  }
  TemporaryFile temporary(path);
  {
    const FileDescriptor file(::open(temporary.path().c_str(), O_RDWR | O_CLOEXEC));
    if (!file.valid()) throw_system_error(ExitCode::cannot_create, "cannot write", path, errno);
    reserve_space(file, bytes.size(), path);
    write_all(file, bytes.data(), bytes.size(), path);
    flush_to_disk(file, path);
    // File systems that lie about a full disk are known.
    if (!holds(file, 0, bytes.data(), bytes.size(), path)) {
      throw Error(ExitCode::cannot_create,
                  fmt::format("cannot write '{}': what was read back differs from what was written; is the "
                              "disk full?",
                              path.string()));
    }
  }
  temporary.become(path);
}

void write_text_file(const fs::path& path, const std::string& text) {
  write_atomically(path, text);
}

}  // namespace rondo
