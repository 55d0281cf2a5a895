#include <signal.h>

#include <iostream>

#include "mounts.hpp"

/// Power cuts: the run writes to a file system in a file, which is copied at a random time. The copy has what
/// had reached the disk by then and nothing else; mounted, it is what a machine finds that starts again.
namespace rondo::soak {
namespace {

constexpr double kSettleSeconds = 0.05;  ///< for system calls of a stopped process to end

/// Stops the run for good where it is, and keeps the disk as it was then. Returns how many rounds had their
/// names.
std::size_t cut_power(Campaign& campaign, const Problem& problem, int ranks, const fs::path& output,
                      const fs::path& image, const fs::path& copy) {
  Process process(campaign, joined(joined({"solve"}, problem.arguments), {"--output", output.string()}),
                  ranks);
  while (process.running() && !fs::exists(output / "lock")) sleep_s(0.002);
  sleep_s(campaign.fraction() * problem.seconds);
  for (const pid_t rank : process.ranks()) ::kill(rank, SIGSTOP);
  sleep_s(kSettleSeconds);
  fs::copy_file(image, copy, fs::copy_options::overwrite_existing);
  const std::size_t rounds = num_round_files(output);
  for (const pid_t rank : process.ranks()) ::kill(rank, SIGKILL);
  process.wait();
  return rounds;
}

}  // namespace

void power_campaign(Campaign& campaign, Tally& tally) {
  Problems problems(campaign);
  const fs::path empty = campaign.folder / "empty.img";
  const fs::path image = campaign.folder / "disk.img";
  const fs::path copy = campaign.folder / "copy.img";
  const fs::path after = campaign.folder / "after";
  make_image(campaign, empty);
  for (int i = 0; campaign.next(); ++i) {
    const Problem& problem = problems.at(i);
    const int ranks = 1 << campaign.number(0, 1);
    const std::string what = "power cut " + std::to_string(i) + " (" + problem.name + ")";
    fs::copy_file(empty, image, fs::copy_options::overwrite_existing);
    std::size_t named = 0;
    {
      const fs::path before = campaign.folder / "before";
      const MountedImage disk(campaign, image, before);
      named = cut_power(campaign, problem, ranks, before / "run", image, copy);
    }
    const MountedImage disk(campaign, copy, after);
    const fs::path run_folder = after / "run";
    if (!fs::exists(run_folder / "problem.json")) {
      tally.count("before there was anything");
      continue;
    }
    const Ending info = run(campaign, {"info", run_folder.string()});
    tally.expect(info.code == 0 && info.out.find("damaged: ") == std::string::npos,
                 what + ": files are damaged\n" + info.out + info.err);
    // The stop may have come between the rename of the last one and the fsync of the folder.
    tally.expect(num_round_files(run_folder) + 1 >= named, what + ": finished rounds were lost");
    tally.count(fs::exists(run_folder / "report.json") ? "after the end" : "in mid-run");
    expect_resumes(campaign, problem, run_folder, ranks == 1 ? 2 : 1, what, tally);
  }
}

}  // namespace rondo::soak
