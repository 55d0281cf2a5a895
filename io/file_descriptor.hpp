#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "rondo/core/error.hpp"

namespace rondo {

/// An open file, closed at the end of the scope.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// Throws Error(`code`) "ACTION PATH: the system's reason for `error_number`".
[[noreturn]] void throw_system_error(ExitCode code, const std::string& action,
                                     const std::filesystem::path& path, int error_number);

/// Opens for reading. Error(no_input) when it does not exist or is a directory, Error(io) otherwise.
FileDescriptor open_for_reading(const std::filesystem::path& path);
/// At most `size` bytes; fewer at the end of the file alone. Throws Error(io).
std::size_t read_some(const FileDescriptor& file, void* data, std::size_t size,
                      const std::filesystem::path& path);
/// All `size` bytes. Throws Error(cannot_create).
void write_all(const FileDescriptor& file, const void* data, std::size_t size,
               const std::filesystem::path& path);
/// The next byte read or written is the one at `offset`. Throws Error(io).
void move_to(const FileDescriptor& file, std::uint64_t offset, const std::filesystem::path& path);
/// Reserves the first `size` bytes of the empty file, so that a full disk is noticed before the first byte of
/// content. Throws Error(cannot_create).
void reserve_space(const FileDescriptor& file, std::uint64_t size, const std::filesystem::path& path);
/// What was written is with the disk, and the next reader gets it from there as far as the system can be
/// asked to forget its own copy. Throws Error(cannot_create).
void flush_to_disk(const FileDescriptor& file, const std::filesystem::path& path);
/// Whether the file has these bytes at `offset`. Throws Error(io).
bool holds(const FileDescriptor& file, std::uint64_t offset, const void* expected, std::size_t size,
           const std::filesystem::path& path);

}  // namespace rondo
