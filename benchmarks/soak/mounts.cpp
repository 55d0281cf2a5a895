#include "mounts.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <fstream>

namespace rondo::soak {
namespace {

constexpr std::uintmax_t kDiskBytes = std::uintmax_t{64} << 20;
constexpr std::uintmax_t kImageBytes = std::uintmax_t{32} << 20;
constexpr int kFiles = 500;

/// What is mounted from here on is seen by this process and its children alone.
void enter_own_mounts() {
  static bool entered = false;
  if (entered) return;
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    throw Skip{"no file system can be mounted here: it needs root"};
  }
  entered = true;
}

struct statvfs status_of(const fs::path& folder) {
  struct statvfs status = {};
  statvfs(folder.c_str(), &status);
  return status;
}

}  // namespace

SmallDisk::SmallDisk(const fs::path& folder) : folder_(folder) {
  enter_own_mounts();
  fs::create_directory(folder_);
  const std::string options = "size=" + std::to_string(kDiskBytes) + ",nr_inodes=" + std::to_string(kFiles);
  if (mount("none", folder_.c_str(), "tmpfs", 0, options.c_str()) != 0) {
    throw Skip{"no tmpfs can be mounted here"};
  }
}

SmallDisk::~SmallDisk() {
  umount2(folder_.c_str(), MNT_DETACH);
}

void SmallDisk::leave_bytes(std::uintmax_t bytes) const {
  std::ofstream filler(folder_ / "filler", std::ios::binary);
  const std::string piece(4096, 'x');
  const auto free_bytes = [&] {
    const struct statvfs status = status_of(folder_);
    return std::uintmax_t{status.f_bavail} * status.f_frsize;
  };
  while (free_bytes() >= bytes + piece.size() && filler.write(piece.data(), 4096).flush()) {
  }
}

void SmallDisk::leave_files(std::uintmax_t files) const {
  const fs::path fillers = folder_ / "fillers";
  fs::create_directory(fillers);
  for (int i = 0; status_of(folder_).f_ffree > files; ++i) std::ofstream(fillers / std::to_string(i));
}

void SmallDisk::free() const {
  fs::remove(folder_ / "filler");
  fs::remove_all(folder_ / "fillers");
}

void SmallDisk::make_read_only() const {
  if (mount("none", folder_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") != 0) {
    throw Skip{"no tmpfs can be made read-only here"};
  }
}

MountedImage::MountedImage(const Campaign& campaign, const fs::path& image, const fs::path& folder)
    : folder_(folder) {
  enter_own_mounts();
  fs::create_directories(folder_);
  const Ending mounted = Process(campaign.folder, {"mount", "-t", "ext4", "-o", "loop,noauto_da_alloc",
                                                   image.string(), folder_.string()})
                             .wait();
  if (mounted.code != 0) throw Skip{"no image can be mounted here: " + mounted.err};
}

MountedImage::~MountedImage() {
  if (umount2(folder_.c_str(), 0) != 0) umount2(folder_.c_str(), MNT_DETACH);
}

void make_image(const Campaign& campaign, const fs::path& image) {
  std::ofstream(image).close();
  fs::resize_file(image, kImageBytes);
  const Ending made = Process(campaign.folder, {"mkfs.ext4", "-q", image.string()}).wait();
  if (made.code != 0) throw Skip{"no ext4 file system can be made here: " + made.err};
}

}  // namespace rondo::soak
