#pragma once

#include <cstdint>

#include "runs.hpp"

/// File systems of this process and its children alone. They need root.
namespace rondo::soak {

/// A disk in memory that can be filled up.
class SmallDisk {
 public:
  /// Throws Skip where nothing can be mounted.
  explicit SmallDisk(const fs::path& folder);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// Fills it up to `bytes`.
  void leave_bytes(std::uintmax_t bytes) const;
  /// Fills it up to the names of so many files.
  void leave_files(std::uintmax_t files) const;
  /// Makes space again.
  void free() const;
  void make_read_only() const;
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

/// An ext4 file system in the file `image`, mounted on `folder`; without the replacement of renamed files
/// that protects programs which do not fsync.
class MountedImage {
 public:
  /// Throws Skip where nothing can be mounted.
  MountedImage(const Campaign& campaign, const fs::path& image, const fs::path& folder);
  ~MountedImage();
  MountedImage(const MountedImage&) = delete;
  MountedImage& operator=(const MountedImage&) = delete;

 private:
  fs::path folder_;
};

/// Makes an empty image. Throws Skip without mkfs.ext4.
void make_image(const Campaign& campaign, const fs::path& image);

}  // namespace rondo::soak
