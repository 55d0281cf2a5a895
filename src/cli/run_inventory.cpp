#include "run_inventory.hpp"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "report.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/round_files.hpp"
#include "rondo/io/run_lock.hpp"
#include "rondo/io/state_files.hpp"
#include "run_folder.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

struct Inventory {
  std::vector<std::vector<std::string>> rows = {};
  std::vector<std::string> damaged = {};

  /// `describe` throws for what is damaged.
  void add(const std::string& name, const std::function<std::string()>& describe) {
    try {
      rows.push_back({name, describe()});
    } catch (const Error& error) {
      rows.push_back({name, "DAMAGED"});
      damaged.emplace_back(error.what());
    }
  }
};

std::string describe_lock(const fs::path& folder) {
  const std::optional<LockOwner> owner = read_lock_owner(folder);
  if (!owner)
    return "damaged lock of an unknown process; the next run waits for its heartbeat, then takes it over";
  switch (state_of(*owner)) {
    case OwnerState::alive:
      return owner->description() + ", at work";
    case OwnerState::dead:
      return owner->description() + ", dead; the next run takes it over";
    case OwnerState::elsewhere:
      break;
  }
  return owner->description() + ", which is out of reach from here; the next run waits for its heartbeat";
}

/// How far the rounds are.
std::string describe_rounds(const RoundPrefix& prefix) {
  if (prefix.rounds.empty()) return "none whole";
  const RoundRecord& last = prefix.rounds.back();
  return fmt::format("{} whole, {:.6g} us of the schedule, {} deliveries not sent yet", prefix.rounds.size(),
                     last.end_us, last.state.unmet.size());
}

void add_unfinished(Inventory& inventory, const fs::path& folder, const std::string& digest) {
  if (has_rounds(folder)) {
    const RoundPrefix prefix = read_round_files(folder, digest);
    inventory.rows.push_back({"rounds", describe_rounds(prefix)});
    if (!prefix.stopped_by.empty()) inventory.damaged.push_back(prefix.stopped_by);
  }
  for (const std::string& name : list_states(folder)) {
    const FoundState found = read_newest_state(folder, name, digest);
    inventory.rows.push_back({"state " + name, found.state ? fmt::format("number {}, {} bytes, whole",
                                                                         found.number, found.state->size())
                                                           : "none whole"});
    const std::vector<std::string> damaged = find_damaged_states(folder, name, digest);
    inventory.damaged.insert(inventory.damaged.end(), damaged.begin(), damaged.end());
  }
}

std::size_t count_left_over(const fs::path& folder) {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (is_temporary_name(entry.path().filename())) ++count;
  }
  return count;
}

}  // namespace

std::string describe_run(const fs::path& folder) {
  Inventory inventory;
  const std::string problem = read_text_file(folder / "problem.json");
  inventory.add("problem.json", [&] {
    const Json json = parse_sealed_json(problem, (folder / "problem.json").string());
    const std::string by = json.value("producer", "an unknown version");
    return by == producer() ? "whole" : fmt::format("whole, but of {}; only that version can resume it", by);
  });
  if (fs::exists(folder / "lock")) inventory.add("locked", [&] { return describe_lock(folder); });
  if (fs::exists(folder / "start.h5")) {
    inventory.add("start.h5", [&] {
      read_start(folder, problem);
      return "whole: the schedule that the run begins with";
    });
  }
  add_unfinished(inventory, folder, digest_of(problem));
  const bool has_report = fs::exists(folder / "report.json");
  if (has_report) {
    inventory.add("result",
                  [&] { return "whole: " + describe(figures_of_report(check_run(folder).report)); });
  } else {
    inventory.rows.push_back({"result", "none yet; rondo resume continues"});
  }
  if (const std::size_t count = count_left_over(folder); count > 0) {
    inventory.rows.push_back(
        {"left over", fmt::format("{} half-written files of killed runs; the next run removes them", count)});
  }
  std::string text = "run\n" + format_table(inventory.rows);
  for (const std::string& what : inventory.damaged) text += "damaged: " + what + "\n";
  return text;
}

}  // namespace rondo::cli
