#include <signal.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>

#include "runs.hpp"

/// Flipped bits and cut-off files in every file of a run: each is named and refused (65), or passed over for
/// the state before; the schedule is never another.
namespace rondo::soak {
namespace {

constexpr int kBadData = 65;

std::vector<fs::path> files_of(const fs::path& run) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), run));
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns what was done to the file.
std::string damage(Campaign& campaign, const fs::path& file, bool cut) {
  std::string bytes = text_of(file);
  if (cut) {
    bytes.resize(campaign.number(0, bytes.size() - 1));
    std::ofstream(file, std::ios::binary) << bytes;
    return "cut to " + std::to_string(bytes.size()) + " bytes";
  }
  const std::size_t bit = campaign.number(0, bytes.size() * 8 - 1);
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  std::ofstream(file, std::ios::binary) << bytes;
  return "bit " + std::to_string(bit) + " flipped";
}

/// What `rondo` has to do with a run whose `file` is damaged.
void check_damaged(Campaign& campaign, const Problem& problem, const fs::path& run_folder,
                   const fs::path& file, bool finished, const std::string& what, Findings& findings) {
  std::string newest_state;
  for (const fs::path& other : files_of(run_folder)) {
    if (other.parent_path() == "states") newest_state = other.filename();  // they are sorted
  }
  const Ending info = run(campaign, {"info", run_folder.string()});
  findings.expect(info.code == 0 || info.code == kBadData,
                  what + ": info ended with " + std::to_string(info.code) + "\n" + info.err);
  const std::string name = file.filename();
  if (finished && name.starts_with("round-")) {
    const Ending again = run(campaign, {"reassemble", run_folder.string(), "--output",
                                        (campaign.folder / "reassembled.h5").string()});
    findings.expect(again.code == kBadData, what + ": reassemble ended with " + std::to_string(again.code));
    return;
  }
  if (finished) {
    const Ending verified = run(campaign, {"verify", run_folder.string()});
    findings.expect(verified.code == kBadData && verified.err.find(name) != std::string::npos,
                    what + ": verify ended with " + std::to_string(verified.code) + "\n" + verified.err);
    return;
  }
  const Ending resumed = run(campaign, {"resume", run_folder.string()});
  if (name == "problem.json") {
    findings.expect(resumed.code == kBadData && resumed.err.find(name) != std::string::npos,
                    what + ": resume ended with " + std::to_string(resumed.code) + "\n" + resumed.err);
    return;
  }
  findings.expect(resumed.code == 0 && digest_of_run(run_folder) == problem.digest,
                  what + ": resume ended with " + std::to_string(resumed.code) + "\n" + resumed.err);
  // Of two states only the newest is read.
  const bool is_older = file.parent_path() == "states" && name != newest_state;
  const bool is_named = name == "lock" || is_older || resumed.err.find(name) != std::string::npos;
  findings.expect(is_named, what + ": used without a word\n" + resumed.err);
}

/// A run that was stopped when it had something to go on from, or a finished one.
fs::path prepare(Campaign& campaign, const Problem& problem, bool finished) {
  const fs::path output = campaign.folder / (problem.name + (finished ? "-finished" : "-unfinished"));
  const Words command = joined(joined({"solve"}, problem.arguments), {"--output", output.string()});
  for (int attempt = 0; attempt < 20; ++attempt) {
    fs::remove_all(output);
    Process process(campaign, command, 1);
    if (finished) {
      process.wait();
      return output;
    }
    const bool in_rounds = problem.name == "rounds";
    while (process.running() &&
           (in_rounds ? num_round_files(output) < 3 : !fs::exists(output / "states/search-00002.state"))) {
      sleep_s(0.001);
    }
    process.signal(SIGKILL);  // so that its lock stays
    process.wait();
    if (!fs::exists(output / "report.json")) return output;
  }
  throw std::runtime_error("no run of " + problem.name + " could be stopped in time");
}

}  // namespace

int damage_campaign(Campaign& campaign) {
  const std::vector<Problem> all = problems(campaign);
  Findings findings;
  const fs::path copy = campaign.folder / "damaged";
  std::map<std::string, int> by_kind;
  std::vector<std::pair<const Problem*, bool>> kinds;
  std::vector<fs::path> runs;
  for (const Problem& problem : all) {
    for (const bool finished : {true, false}) {
      kinds.emplace_back(&problem, finished);
      runs.push_back(prepare(campaign, problem, finished));
    }
  }
  for (int i = 0; i < campaign.count; ++i) {
    const std::size_t k = static_cast<std::size_t>(i) % kinds.size();
    const auto& [problem, finished] = kinds[k];
    fs::remove_all(copy);
    fs::copy(runs[k], copy, fs::copy_options::recursive);
    std::vector<fs::path> files = files_of(copy);
    // The lock of a killed run matters less than its states, and costs seconds of waiting for its owner.
    if (i % 50 != 0) std::erase(files, "lock");
    const fs::path file = files[campaign.number(0, files.size() - 1)];
    const bool cut = i % 6 == 5;
    const std::string what = std::to_string(i) + ": " + runs[k].filename().string() + "/" + file.string() +
                             ", " + damage(campaign, copy / file, cut);
    ++by_kind[cut ? "truncations" : "flipped bits"];
    check_damaged(campaign, *problem, copy, file, finished, what, findings);
    if (i % 100 == 99) std::cout << i + 1 << " damages, " << findings.count() << " findings" << std::endl;
  }
  for (const auto& [kind, count] : by_kind) std::cout << count << " " << kind << ", ";
  std::cout << findings.count() << " not detected or not survived" << std::endl;
  return findings.count();
}

}  // namespace rondo::soak
