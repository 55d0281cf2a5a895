#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

namespace rondo::fuzz {

/// A file that is on no disk. Its path holds in this process and in its children.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("rondo-fuzz", 0)) {
    if (file_ < 0) std::abort();
  }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

  void set_content(std::span<const char> bytes) const {
    if (::ftruncate(file_, 0) != 0 ||
        ::pwrite(file_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
  }

 private:
  int file_;
};

/// The file that a target's input is read from.
inline const MemoryFile& input_file() {
  static const MemoryFile file;
  return file;
}

}  // namespace rondo::fuzz
