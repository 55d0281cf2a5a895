#include <signal.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

#include "runs.hpp"

/// Flipped bits and cut-off files in every file of a run: each is named by rondo info, and refused (65) or
/// passed over for the state before by who would use it; the schedule is never another.
namespace rondo::soak {
namespace {

constexpr int kBadData = 65;

/// A folder that damage is done to, and what is in it.
struct Subject {
  const Problem* problem;
  bool finished;
  fs::path run;
  std::map<std::string, std::vector<fs::path>> files = {};  ///< by kind; ascending
};

/// "rounds" and "states" for what is in these folders, else the name.
std::string kind_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path().string() : file.string();
}

void list_files(Subject& subject) {
  for (const auto& entry : fs::recursive_directory_iterator(subject.run)) {
    const bool half_written = entry.path().filename().string().starts_with(".");  // means nothing
    if (!entry.is_regular_file() || half_written) continue;
    const fs::path file = fs::relative(entry.path(), subject.run);
    subject.files[kind_of(file)].push_back(file);
  }
  for (auto& [kind, files] : subject.files) std::sort(files.begin(), files.end());
}

/// Whether there is a newer state of the same name, or, of a plan's, a round, so that nobody reads this one.
bool is_superseded(const Subject& subject, const fs::path& file) {
  const auto phase = [](const fs::path& state) {
    const std::string name = state.filename();
    return name.substr(0, name.rfind('-'));
  };
  if (kind_of(file) != "states") return false;
  if (phase(file).starts_with("plan-") && subject.files.contains("rounds")) return true;
  const auto& states = subject.files.at("states");
  return std::any_of(states.begin(), states.end(),
                     [&](const fs::path& other) { return phase(other) == phase(file) && other > file; });
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
void check_damaged(Campaign& campaign, const Subject& subject, const fs::path& run_folder,
                   const fs::path& file, const std::string& what, Tally& tally) {
  const std::string name = file.filename();
  const Ending info = run(campaign, {"info", run_folder.string()});
  const std::string named = name == "lock" ? "damaged lock" : "damaged: ";
  tally.expect(
      info.code == 0 && info.out.find(named) != std::string::npos && info.out.find(name) != std::string::npos,
      what + ": info ended with " + std::to_string(info.code) + "\n" + info.out + info.err);

  const bool is_of_round = kind_of(file) == "rounds";
  if (subject.finished || name == "problem.json") {
    const fs::path again = campaign.folder / "reassembled.h5";
    const Ending refused =
        run(campaign, !subject.finished ? Words{"resume", run_folder.string()}
                      : is_of_round     ? Words{"reassemble", run_folder.string(), "--output", again.string()}
                                        : Words{"verify", run_folder.string()});
    tally.expect(
        refused.code == kBadData && refused.err.find(name) != std::string::npos && !fs::exists(again),
        what + ": ended with " + std::to_string(refused.code) + "\n" + refused.err);
    tally.count("refused with code 65");
    return;
  }
  const Ending resumed = run(campaign, {"resume", run_folder.string()});
  tally.expect(resumed.code == 0 && is_solved(run_folder, *subject.problem),
               what + ": resume ended with " + std::to_string(resumed.code) + "\n" + resumed.err);
  if (is_superseded(subject, file)) {
    tally.count("gone on with a newer state");
    return;
  }
  tally.expect(resumed.err.find(name) != std::string::npos, what + ": used without a word\n" + resumed.err);
  tally.count(name == "lock" ? "lock waited for, then taken over" : "gone on with the state before");
}

/// A run that was stopped when it had something to go on from; nothing where the engine keeps no states.
std::optional<Subject> stopped(Campaign& campaign, const Problem& problem) {
  constexpr std::size_t kEnough = 2;
  const fs::path output = campaign.folder / (problem.name + "-unfinished");
  Subject subject{&problem, false, output};
  const Words command = joined(joined({"solve"}, problem.arguments), {"--output", output.string()});
  for (int attempt = 0; attempt < 20; ++attempt) {
    fs::remove_all(output);
    Process process(campaign, command, 1);
    std::size_t most = 0;
    while (process.running() && most < kEnough) {
      most = problem.name == "rounds" ? num_round_files(output) : num_states(output);
      sleep_s(0.001);
    }
    process.signal(SIGKILL);  // so that its lock stays
    process.wait();
    if (!fs::exists(output / "report.json")) {
      list_files(subject);
      return subject;
    }
  }
  std::cout << problem.name << " keeps no states, or ends too soon" << std::endl;
  return std::nullopt;
}

/// Of each problem in turn the undisturbed run and one that was stopped, each made when its turn comes.
class Subjects {
 public:
  explicit Subjects(Campaign& campaign)
      : campaign_(campaign), problems_(campaign), all_(2 * problems_.size()) {}
  const Subject& next() {
    for (;; ++turn_) {
      std::optional<Subject>& subject = all_[turn_ % all_.size()];
      if (turn_ < all_.size()) subject = made(turn_);
      if (subject) {
        ++turn_;
        return *subject;
      }
    }
  }

 private:
  std::optional<Subject> made(std::size_t turn) {
    const Problem& problem = problems_.at(static_cast<int>(turn / 2));
    if (turn % 2 == 1) return stopped(campaign_, problem);
    Subject subject{&problem, true, problems_.undisturbed(problem)};
    list_files(subject);
    return subject;
  }
  Campaign& campaign_;
  Problems problems_;
  std::vector<std::optional<Subject>> all_;
  std::size_t turn_ = 0;
};

}  // namespace

void damage_campaign(Campaign& campaign, Tally& tally) {
  constexpr std::size_t kLocks = 60;  // one of so many: it costs seconds of waiting for its owner
  const fs::path copy = campaign.folder / "damaged";
  Subjects subjects(campaign);
  for (int i = 0; campaign.next(); ++i) {
    const Subject& subject = subjects.next();
    auto kinds = subject.files;
    if (campaign.number(1, kLocks) > 1) kinds.erase("lock");
    const auto& [kind, files] =
        *std::next(kinds.begin(), static_cast<int>(campaign.number(0, kinds.size() - 1)));
    const fs::path file = files[campaign.number(0, files.size() - 1)];
    fs::remove_all(copy);
    fs::copy(subject.run, copy, fs::copy_options::recursive);
    const bool cut = i % 6 == 5;
    const std::string what = std::to_string(i) + ": " + subject.run.filename().string() + "/" +
                             file.string() + ", " + damage(campaign, copy / file, cut);
    tally.count(cut ? "truncations" : "flipped bits");
    tally.count("in " + kind);
    check_damaged(campaign, subject, copy, file, what, tally);
    if (i % 100 == 99) std::cout << i + 1 << " damages, " << tally.findings() << " findings" << std::endl;
  }
}

}  // namespace rondo::soak
