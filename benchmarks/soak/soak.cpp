// soak CAMPAIGN [--count N] [--seconds N] [--seed N] [--only PROBLEM] [--json FILE] [--rondo PROGRAM]:
// disturbs real runs for as long as asked. Exit code 0 without a finding, 1 with, 77 where the campaign
// cannot be run.

#include <stdlib.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>

#include "results.hpp"
#include "runs.hpp"

namespace {

using namespace rondo::soak;

struct Kind {
  void (*run)(Campaign& campaign, Tally& tally);
  int count;  ///< by default
};
const std::map<std::string, Kind> kCampaigns = {{"kills", {kill_campaign, 300}},
                                                {"signals", {signal_campaign, 50}},
                                                {"damage", {damage_campaign, 1200}},
                                                {"disk", {disk_campaign, 100}},
                                                {"power", {power_campaign, 60}}};

[[noreturn]] void usage() {
  std::cerr
      << "usage: soak kills|signals|damage|disk|power [--count N] [--seconds N] [--seed N] [--only PROBLEM] "
         "[--json FILE] [--rondo PROGRAM]\n";
  std::exit(64);
}

int number(const char* text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc() || *end != '\0' || value < 0) usage();
  return value;
}

/// A folder of its own, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "rondo-soak-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0 || !kCampaigns.contains(argv[1])) usage();
  const Kind& kind = kCampaigns.at(argv[1]);
  Campaign campaign;
  campaign.rondo = fs::canonical("/proc/self/exe").parent_path().parent_path() / "rondo";
  campaign.count = kind.count;
  fs::path json;
  int seed = 0;
  for (int i = 2; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--count") {
      campaign.count = number(argv[i + 1]);
    } else if (option == "--seed") {
      seed = number(argv[i + 1]);
    } else if (option == "--seconds") {
      campaign.seconds = number(argv[i + 1]);
    } else if (option == "--only") {
      campaign.only = argv[i + 1];
    } else if (option == "--json") {
      json = argv[i + 1];
    } else if (option == "--rondo") {
      campaign.rondo = argv[i + 1];
    } else {
      usage();
    }
  }
  campaign.random.seed(static_cast<std::uint64_t>(seed));
  try {
    const Folder folder;
    campaign.folder = folder.path;
    Tally tally;
    kind.run(campaign, tally);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - campaign.start;
    for (const auto& [outcome, count] : tally.counts()) std::cout << outcome << ": " << count << "\n";
    std::cout << campaign.done << " disturbances, " << tally.findings() << " findings in " << seconds.count()
              << " s" << std::endl;
    if (!json.empty()) add_to_results(json, argv[1], campaign, seed, tally, seconds.count());
    return tally.findings() == 0 ? 0 : 1;
  } catch (const Skip& skip) {
    std::cout << "skipped: " << skip.reason << std::endl;
    return 77;
  }
}
