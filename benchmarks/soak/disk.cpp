#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <fstream>
#include <iostream>

#include "runs.hpp"

/// A disk that fills up: a small tmpfs with more and more space, so that each write of a run in turn is the
/// one that fails. And a folder that is read-only.
namespace rondo::soak {
namespace {

constexpr int kCannotWrite = 73;
constexpr std::uintmax_t kDiskBytes = std::uintmax_t{64} << 20;

/// A disk of its own for this process and its children.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& folder) : folder_(folder) {
    fs::create_directory(folder_);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", folder_.c_str(), "tmpfs", 0, ("size=" + std::to_string(kDiskBytes)).c_str()) != 0) {
      throw Skip{"no file system can be mounted here: it needs root"};
    }
  }
  ~SmallDisk() { umount2(folder_.c_str(), MNT_DETACH); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  std::uintmax_t free_bytes() const {
    struct statvfs status = {};
    statvfs(folder_.c_str(), &status);
    return std::uintmax_t{status.f_bavail} * status.f_frsize;
  }
  /// Fills the disk up to `bytes`.
  void leave(std::uintmax_t bytes) const {
    std::ofstream filler(folder_ / "filler", std::ios::binary);
    const std::string piece(4096, 'x');
    while (free_bytes() >= bytes + piece.size() && filler.write(piece.data(), 4096).flush()) {
    }
  }
  void free() const { fs::remove(folder_ / "filler"); }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

std::uintmax_t bytes_of(const fs::path& run) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) bytes += (entry.file_size() + 4095) / 4096 * 4096;
  }
  return bytes;
}

void expect_full_disk_survived(Campaign& campaign, const SmallDisk& disk, const Problem& problem, int ranks,
                               std::uintmax_t space, int& refused, Findings& findings) {
  const fs::path output = disk.folder() / "run";
  fs::remove_all(output);
  const Words arguments = joined(problem.arguments, {"--resume", "--output", output.string()});
  const std::string what =
      problem.name + ", " + std::to_string(ranks) + " ranks, " + std::to_string(space) + " bytes";
  disk.leave(space);
  const Ending full = run(campaign, joined({"solve"}, arguments), ranks);
  findings.expect(full.code == kCannotWrite || full.code == 0,
                  what + ": ended with " + std::to_string(full.code) + "\n" + full.err);
  findings.expect(full.code == 0 || full.err.find("No space left") != std::string::npos,
                  what + ": does not name the disk\n" + full.err);
  if (full.code != 0) ++refused;
  const std::size_t whole = num_round_files(output);
  disk.free();
  const Ending again = run(campaign, joined({"solve"}, arguments), ranks);
  findings.expect(
      again.code == 0 && digest_of_run(output) == problem.digest,
      what + ": after space was made it ended with " + std::to_string(again.code) + "\n" + again.err);
  if (full.code != 0 && problem.name == "rounds" && fs::exists(output / "report.json")) {
    findings.expect(figure_of_run(output, "rounds_resumed") == static_cast<double>(whole),
                    what + ": finished rounds were lost");
  }
}

}  // namespace

int disk_campaign(Campaign& campaign) {
  const std::vector<Problem> all = problems(campaign);
  Findings findings;
  const SmallDisk disk(campaign.folder / "disk");
  int refused = 0;
  for (int i = 0; i < campaign.count; ++i) {
    const Problem& problem = all[static_cast<std::size_t>(i) % all.size()];
    const std::uintmax_t needed = bytes_of(campaign.folder / ("undisturbed-" + problem.name)) + (32 << 10);
    // Evenly from nothing to all of it, so that every file in turn meets the end of the disk.
    const auto step = static_cast<std::uintmax_t>(i) / all.size();
    const auto steps = static_cast<std::uintmax_t>(campaign.count) / all.size() + 1;
    expect_full_disk_survived(campaign, disk, problem, i / 2 % 2 == 0 ? 1 : 2,
                              needed * step / steps / 4096 * 4096, refused, findings);
  }
  const fs::path closed = disk.folder() / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec);
  const Ending ending =
      run(campaign, joined(joined({"solve"}, all[0].arguments), {"--output", closed.string()}), 2);
  findings.expect(ending.code == kCannotWrite, "read-only folder: ended with " + std::to_string(ending.code));
  std::cout << campaign.count << " disks that filled up, " << refused
            << " in mid-run, all with code 73 and resumed after space was made; a read-only folder: "
            << (findings.count() == 0 ? "yes" : "NO") << std::endl;
  findings.expect(refused * 2 >= campaign.count, "too few disks filled up to say anything");
  return findings.count();
}

}  // namespace rondo::soak
