#include "temporary_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "file_descriptor.hpp"
#include "random_hex.hpp"
#include "rondo/io/files.hpp"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = ".rondo-";
constexpr std::string_view kAfter = ".tmp";

}  // namespace

std::string random_hex() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

TemporaryFile::TemporaryFile(const fs::path& target) {
  constexpr mode_t kMode = 0666;  // less the user's umask, as for any file
  int descriptor = -1;
  do {
    path_ = folder_of(target) / fmt::format("{}{}{}", kBefore, random_hex(), kAfter);
    descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  } while (descriptor < 0 && errno == EEXIST);
  if (descriptor < 0) throw_system_error(ExitCode::cannot_create, "cannot write", target, errno);
  ::close(descriptor);
}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) ::unlink(path_.c_str());
}

void TemporaryFile::become(const fs::path& target) {
  if (::rename(path_.c_str(), target.c_str()) != 0) {
    throw_system_error(ExitCode::cannot_create, "cannot write", target, errno);
  }
  renamed_ = true;
  sync_folder(folder_of(target), target);
}

bool is_temporary_name(const fs::path& name) {
  const std::string text = name.string();
  return text.size() > kBefore.size() + kAfter.size() && text.starts_with(kBefore) && text.ends_with(kAfter);
}

void remove_temporary_files(const fs::path& folder) {
  std::vector<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (is_temporary_name(entry->path().filename())) left.push_back(entry->path());
  }
  for (const fs::path& path : left) remove_file(path);
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw_system_error(ExitCode::cannot_create, "cannot remove", path, error.value());
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

bool make_folder(const fs::path& folder) {
  std::error_code error;
  const bool made = fs::create_directory(folder, error);
  if (error) throw_system_error(ExitCode::cannot_create, "cannot make the folder", folder, error.value());
  if (made) sync_folder(folder_of(folder), folder);
  return made;
}

void sync_folder(const fs::path& folder, const fs::path& shown) {
  const FileDescriptor names(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems have no fsync for folders and report EINVAL, which is no error.
  if (!names.valid() || (::fsync(names.get()) != 0 && errno != EINVAL)) {
    throw_system_error(ExitCode::cannot_create, "cannot write", shown, errno);
  }
}

}  // namespace rondo
