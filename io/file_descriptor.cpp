#include "file_descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

namespace rondo {

FileDescriptor::~FileDescriptor() {
  if (valid()) ::close(descriptor_);
}

void throw_system_error(ExitCode code, const std::string& action, const std::filesystem::path& path,
                        int error_number) {
  throw Error(
      code, fmt::format("{} '{}': {}", action, path.string(), std::generic_category().message(error_number)));
}

FileDescriptor open_for_reading(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
    throw_system_error(absent ? ExitCode::no_input : ExitCode::io, "cannot read", path, errno);
  }
  struct stat status = {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    throw_system_error(ExitCode::no_input, "cannot read", path, EISDIR);
  }
  return FileDescriptor(descriptor);
}

std::size_t read_some(const FileDescriptor& file, void* data, std::size_t size,
                      const std::filesystem::path& path) {
  auto* next = static_cast<char*>(data);
  std::size_t left = size;
  while (left > 0) {
    const ssize_t count = ::read(file.get(), next, left);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error(ExitCode::io, "cannot read", path, errno);
    if (count == 0) break;
    next += count;
    left -= static_cast<std::size_t>(count);
  }
  return size - left;
}

void write_all(const FileDescriptor& file, const void* data, std::size_t size,
               const std::filesystem::path& path) {
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(file.get(), next, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error(ExitCode::cannot_create, "cannot write", path, errno);
    next += count;
    size -= static_cast<std::size_t>(count);
  }
}

void move_to(const FileDescriptor& file, std::uint64_t offset, const std::filesystem::path& path) {
  if (::lseek(file.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
    throw_system_error(ExitCode::io, "cannot seek in", path, errno);
  }
}

void reserve_space(const FileDescriptor& file, std::uint64_t size, const std::filesystem::path& path) {
  if (size == 0) return;
  int failed = 0;
  do {
    failed = ::fallocate(file.get(), 0, 0, static_cast<off_t>(size));
  } while (failed != 0 && errno == EINTR);
  if (failed == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    throw_system_error(ExitCode::cannot_create, "cannot write", path, errno);
  }
  // posix_fallocate() would now touch every block with a read and a write of its own, which takes minutes on
  // a network file system. Zeros in large pieces take as long as the content will.
  const std::vector<char> zeros(std::min(size, std::uint64_t{1} << 20));
  for (std::uint64_t left = size; left > 0;) {
    const std::size_t piece = std::min<std::uint64_t>(left, zeros.size());
    write_all(file, zeros.data(), piece, path);
    left -= piece;
  }
  flush_to_disk(file, path);  // where a network file system says that there is no space
  move_to(file, 0, path);
}

void flush_to_disk(const FileDescriptor& file, const std::filesystem::path& path) {
  if (::fsync(file.get()) != 0) throw_system_error(ExitCode::cannot_create, "cannot write", path, errno);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

bool holds(const FileDescriptor& file, std::uint64_t offset, const void* expected, std::size_t size,
           const std::filesystem::path& path) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::vector<char> found(std::min(size, kPieceBytes));
  move_to(file, offset, path);
  for (std::size_t at = 0; at < size;) {
    const std::size_t piece = std::min(size - at, kPieceBytes);
    if (read_some(file, found.data(), piece, path) != piece ||
        std::memcmp(found.data(), static_cast<const char*>(expected) + at, piece) != 0) {
      return false;
    }
    at += piece;
  }
  return true;
}

}  // namespace rondo
