#include "file_descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

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
  const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size));
  if (error != 0 && error != EOPNOTSUPP && error != EINVAL) {
    throw_system_error(ExitCode::cannot_create, "cannot write", path, error);
  }
}

void write_file(const std::filesystem::path& path, const void* data, std::size_t size,
                const std::filesystem::path& shown) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) throw_system_error(ExitCode::cannot_create, "cannot write", shown, errno);
  reserve_space(file, size, shown);
  write_all(file, data, size, shown);
}

}  // namespace rondo
