#pragma once

#include <filesystem>

/// The pieces of a file that is whole or not there: a temporary name, fsync, rename, fsync of the folder.
namespace rondo {

/// A new file under a name nobody can guess; removed at the end of the scope unless it got another name.
class TemporaryFile {
 public:
  /// In the folder of `target`, so that a rename can replace it. Throws Error(cannot_create).
  explicit TemporaryFile(const std::filesystem::path& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Gives the file, which flush_to_disk() has seen whole, the name `target` and fsyncs the folder. Throws
  /// Error(cannot_create).
  void become(const std::filesystem::path& target);

 private:
  std::filesystem::path path_;
  bool renamed_ = false;
};

/// The folder that holds `path`.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// fsyncs the names in `folder`. Throws Error(cannot_create), which names `shown`.
void sync_folder(const std::filesystem::path& folder, const std::filesystem::path& shown);

}  // namespace rondo
