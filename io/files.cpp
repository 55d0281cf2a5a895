#include "rondo/io/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <random>
#include <system_error>

#include "file_descriptor.hpp"

namespace rondo {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

std::string random_hex() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// A new file under a name nobody can guess; removed at the end of the scope unless it got another name.
class TemporaryFile {
 public:
  /// In the folder of `target`, so that a rename can replace it. Throws Error(cannot_create).
  explicit TemporaryFile(const fs::path& target) {
    constexpr mode_t kMode = 0666;  // less the user's umask, as for any file
    int descriptor = -1;
    do {
      path_ = folder_of(target) / (".rondo-" + random_hex() + ".tmp");
      descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    } while (descriptor < 0 && errno == EEXIST);
    if (descriptor < 0) throw_system_error(ExitCode::cannot_create, "cannot write", target, errno);
    ::close(descriptor);
  }
  ~TemporaryFile() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const fs::path& path() const { return path_; }

  void rename_to(const fs::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) {
      throw_system_error(ExitCode::cannot_create, "cannot write", target, errno);
    }
    renamed_ = true;
  }

 private:
  fs::path path_;
  bool renamed_ = false;
};

/// `shown` is the path for the message.
void sync(const fs::path& path, int flags, const fs::path& shown) {
  const FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  // Some file systems know no fsync for folders and say EINVAL; there is nothing more to ask of them.
  if (!file.valid() || (::fsync(file.get()) != 0 && errno != EINVAL)) {
    throw_system_error(ExitCode::cannot_create, "cannot write", shown, errno);
  }
}

}  // namespace

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
  sync(temporary.path(), O_WRONLY, path);
  temporary.rename_to(path);
  sync(folder_of(path), O_RDONLY | O_DIRECTORY, path);
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
