#include <fstream>
#include <iostream>

#include "mounts.hpp"

/// A disk that fills up: a small tmpfs with more and more space, or more and more files, so that each write
/// of a run in turn is the one that fails. The outputs of other commands. Folders that are read-only.
namespace rondo::soak {
namespace {

constexpr int kCannotWrite = 73;
constexpr std::uintmax_t kBlock = 4096;
constexpr std::size_t kFilesOfARun = 40;

std::uintmax_t blocks_of(const fs::path& run) {
  std::uintmax_t blocks = 0;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) blocks += (entry.file_size() + kBlock - 1) / kBlock;
  }
  return blocks;
}

/// What could not be written, by the message.
std::string phase_of(const std::string& message) {
  for (const char* phase : {"problem.json", "rounds", "states", "schedule.h5", "report.json", "lock"}) {
    if (message.find(phase) != std::string::npos) return phase;
  }
  return "folder";
}

void expect_full_disk_survived(Campaign& campaign, const SmallDisk& disk, const Problem& problem, int ranks,
                               const std::string& space, Tally& tally) {
  const fs::path output = disk.folder() / "run";
  const Words arguments = joined(problem.arguments, {"--resume", "--output", output.string()});
  const std::string what = problem.name + ", " + std::to_string(ranks) + " ranks, " + space;
  const Ending full = run(campaign, joined({"solve"}, arguments), ranks);
  tally.expect(full.code == kCannotWrite || full.code == 0,
               what + ": ended with " + std::to_string(full.code) + "\n" + full.err);
  if (full.code == 0) {
    tally.count("disks that sufficed");
  } else {
    tally.expect(full.err.find("No space left") != std::string::npos,
                 what + ": does not name the disk\n" + full.err);
    tally.count("code 73 at " + phase_of(full.err));
    tally.count("code 73");
  }
  if (fs::exists(output / "problem.json")) {
    const Ending info = run(campaign, {"info", output.string()});
    tally.expect(info.code == 0 && info.out.find("damaged") == std::string::npos,
                 what + ": what is left is damaged\n" + info.out + info.err);
  }
  disk.free();
  expect_resumes(campaign, problem, output, ranks == 1 ? 2 : 1, what, tally);
}

/// The outputs of other commands replace a file whole or leave it.
void expect_outputs_survive(Campaign& campaign, const SmallDisk& disk, const fs::path& solved, Tally& tally) {
  const std::string run_folder = solved.string();
  const std::string output = (disk.folder() / "output").string();
  std::vector<Words> commands = {{"reassemble", run_folder, "--output", output},
                                 {"topology", "generate", "dragonfly", "--output", output}};
  for (const char* format : {"json", "svg", "html", "trace"}) {
    commands.push_back({"export", run_folder, "--format", format, "--output", output});
  }
  for (const Words& command : commands) {
    if (command.front() == "reassemble" && num_round_files(solved) == 0) continue;
    std::ofstream(output) << "before";
    disk.leave_bytes(0);
    const std::string what = command.front() + " " + command[command.size() - 3];
    const Ending full = run(campaign, command);
    tally.expect(full.code == kCannotWrite && full.err.find("No space left") != std::string::npos,
                 what + ": ended with " + std::to_string(full.code) + "\n" + full.err);
    tally.expect(text_of(output) == "before", what + ": the file before is not whole");
    disk.free();
    const auto entries = std::distance(fs::directory_iterator(disk.folder()), fs::directory_iterator());
    tally.expect(entries == 1, what + ": something is left behind");
    tally.expect(run(campaign, command).code == 0, what + ": fails with space");
    tally.count("outputs of other commands, code 73");
    fs::remove(output);
  }
}

void expect_read_only_refused(Campaign& campaign, const SmallDisk& disk, const Problem& problem,
                              Tally& tally) {
  const fs::path closed = disk.folder() / "closed";
  fs::create_directory(closed);
  const auto expect_refused = [&](const std::string& what) {
    const Ending ending =
        run(campaign, joined(joined({"solve"}, problem.arguments), {"--output", closed.string()}), 2);
    tally.expect(ending.code == kCannotWrite, what + ": ended with " + std::to_string(ending.code));
    tally.count("read-only, code 73");
  };
  fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec);
  expect_refused("read-only folder");
  fs::permissions(closed, fs::perms::owner_all);
  disk.make_read_only();
  expect_refused("read-only file system");
}

}  // namespace

void disk_campaign(Campaign& campaign, Tally& tally) {
  Problems problems(campaign);
  const SmallDisk disk(campaign.folder / "disk");
  for (int i = 0; campaign.next(); ++i) {
    const Problem& problem = problems.at(i);
    const int ranks = 1 << campaign.number(0, 1);
    fs::remove_all(disk.folder() / "run");
    std::string space;
    if (i % 4 == 3) {  // space, but no room for more files
      const std::size_t files = campaign.number(0, kFilesOfARun);
      space = std::to_string(files) + " files";
      disk.leave_files(files);
    } else {  // between nothing and all of it, so that every file meets the end of the disk; the first are
              // small
      constexpr std::size_t kFirst = 8;
      const std::size_t blocks =
          campaign.number(0, i % 2 == 0 ? kFirst : blocks_of(problems.undisturbed(problem)) + kFirst);
      space = std::to_string(blocks) + " blocks";
      disk.leave_bytes(blocks * kBlock);
    }
    expect_full_disk_survived(campaign, disk, problem, ranks, space, tally);
    if (i % 20 == 19) std::cout << i + 1 << " disks, " << tally.findings() << " findings" << std::endl;
  }
  fs::remove_all(disk.folder() / "run");
  const Problem& first = problems.at(0);
  expect_outputs_survive(campaign, disk, problems.undisturbed(first), tally);
  expect_read_only_refused(campaign, disk, first, tally);
  tally.expect(says_something(campaign, tally, "code 73"), "too few disks filled up to say anything");
}

}  // namespace rondo::soak
