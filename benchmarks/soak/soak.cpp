// soak CAMPAIGN [--count N] [--seed N] [--rondo PROGRAM]: disturbs real runs for as long as asked. Exit code
// 0 without a finding, 1 with, 77 where the campaign cannot be run.

#include <stdlib.h>

#include <charconv>
#include <cstring>
#include <iostream>
#include <map>

#include "runs.hpp"

namespace {

using rondo::soak::Campaign;

struct Kind {
  int (*run)(Campaign& campaign);
  int count;  ///< by default
};
const std::map<std::string, Kind> kCampaigns = {{"kills", {rondo::soak::kill_campaign, 300}},
                                                {"signals", {rondo::soak::signal_campaign, 50}},
                                                {"damage", {rondo::soak::damage_campaign, 1200}},
                                                {"disk", {rondo::soak::disk_campaign, 60}}};

[[noreturn]] void usage() {
  std::cerr << "usage: soak kills|signals|damage|disk [--count N] [--seed N] [--rondo PROGRAM]\n";
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
    std::string name = (std::filesystem::temp_directory_path() / "rondo-soak-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0 || !kCampaigns.contains(argv[1])) usage();
  const Kind& kind = kCampaigns.at(argv[1]);
  Campaign campaign;
  campaign.rondo = std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "rondo";
  campaign.count = kind.count;
  for (int i = 2; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--count") {
      campaign.count = number(argv[i + 1]);
    } else if (option == "--seed") {
      campaign.random.seed(static_cast<std::uint64_t>(number(argv[i + 1])));
    } else if (option == "--rondo") {
      campaign.rondo = argv[i + 1];
    } else {
      usage();
    }
  }
  try {
    const Folder folder;
    campaign.folder = folder.path;
    return kind.run(campaign) == 0 ? 0 : 1;
  } catch (const rondo::soak::Skip& skip) {
    std::cout << "skipped: " << skip.reason << std::endl;
    return 77;
  }
}
