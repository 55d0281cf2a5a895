#include "single_failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "rondo/catalogue/entry.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/pipeline/repair.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::pair<NodeId, NodeId>> joined_pairs(const Topology& topology) {
  std::set<std::pair<NodeId, NodeId>> pairs;
  for (const Link& link : topology.links()) pairs.insert(std::minmax(link.src, link.dst));
  return {pairs.begin(), pairs.end()};
}

std::string name_of(const Topology& topology, NodeId n) {
  const std::string& name = topology.node(n).name;
  return name.empty() ? std::to_string(n.value) : name;
}

class SingleFailures {
 public:
  SingleFailures(const ProvenSchedule& running, double at_us, fs::path folder)
      : running_(running),
        at_us_(at_us),
        folder_(std::move(folder)),
        pairs_(joined_pairs(running.topology)),
        digest_(schedule_digest(running.demand, running.schedule)),
        fabric_(catalogue::fingerprint(running.topology)) {}

  std::size_t size() const { return pairs_.size(); }

  /// What came of one of them, from the file of an earlier call or anew.
  std::string row(std::size_t i) const {
    const auto [a, b] = pairs_[i];
    const std::string stem = fmt::format("{}-{}", a.value, b.value);
    const fs::path file = folder_ / (stem + ".json");
    if (fs::exists(file)) {
      const Json kept = parse_json(read_text_file(file), file);
      if (kept.value("schedule_digest", "") == digest_ && kept.value("fabric", fabric_) == fabric_ &&
          kept.value("at_us", -1.0) == at_us_)
        return kept.dump();
      throw Error(ExitCode::bad_data,
                  fmt::format("{} is of another schedule or time; give another folder", file.string()));
    }
    const Json row = made(a, b, folder_ / (stem + ".h5"));
    write_text_file(file, format_json(row));
    return row.dump();
  }

 private:
  Json made(NodeId a, NodeId b, const fs::path& rest) const {
    Failure failure{at_us_, {}};
    for (std::size_t l = 0; l < running_.topology.num_links(); ++l) {
      const Link& link = running_.topology.links()[l];
      if (std::minmax(link.src, link.dst) == std::minmax(a, b)) failure.links.push_back({LinkId{l}, 0});
    }
    Json row = {{"nodes", {a.value, b.value}},
                {"names", {name_of(running_.topology, a), name_of(running_.topology, b)}},
                {"at_us", at_us_},
                {"schedule_digest", digest_},
                {"fabric", fabric_}};
    try {
      const auto alone = make_local_communicator();
      const Stopwatch clock;
      const Repair repaired = repair(running_, failure, {*alone});
      row["whole_finish_us"] = repaired.whole.schedule.finish_us;
      row["lost"] = repaired.lost;
      row["made_by"] = repaired.made_by;
      row["seconds"] = clock.seconds();
      if (repaired.rest) {
        row["finish_us"] = repaired.rest->schedule.finish_us;
        row["lower_bound_us"] = repaired.rest->lower_bound->us;
        write_schedule(rest, *repaired.rest);
        const ProvenSchedule written = read_schedule(rest);  // files leave out what says nothing
        row["rest_digest"] = schedule_digest(written.demand, written.schedule);
      }
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable && error.code() != ExitCode::bad_data) throw;
      row["refused"] = error.what();
    }
    return row;
  }

  const ProvenSchedule& running_;
  double at_us_;
  fs::path folder_;
  std::vector<std::pair<NodeId, NodeId>> pairs_;
  std::string digest_;
  std::string fabric_;
};

std::string table_of(const Json& rows, double undisturbed_us) {
  std::vector<std::vector<std::string>> table = {
      {"links between", "finish", "times", "rest", "gap", "made by"}};
  std::size_t refused = 0;
  double worst_us = 0;
  double seconds = 0;
  for (const Json& row : rows) {
    const std::string names =
        fmt::format("{} {}", row["names"][0].get<std::string>(), row["names"][1].get<std::string>());
    if (row.contains("refused")) {
      ++refused;
      table.push_back({names, "none", "", "", "", row["refused"].get<std::string>()});
      continue;
    }
    const double finish_us = row["whole_finish_us"];
    worst_us = std::max(worst_us, finish_us);
    seconds += row["seconds"].get<double>();
    std::string rest = "nothing left";
    std::string gap;
    if (row.contains("finish_us")) {
      rest = fmt::format("{:.6g} us", row["finish_us"].get<double>());
      gap = fmt::format("{:.2f} %",
                        100 * (row["finish_us"].get<double>() / row["lower_bound_us"].get<double>() - 1));
    }
    table.push_back({names, fmt::format("{:.6g} us", finish_us),
                     fmt::format("{:.3f}", finish_us / undisturbed_us), rest, gap,
                     row["made_by"].get<std::string>()});
  }
  return format_table(table) +
         fmt::format(
             "{} failures, {} without a repair; the latest finish {:.7g} us, {:.7g} us without a failure; "
             "{:.3g} s of work\n",
             rows.size(), refused, worst_us, undisturbed_us, seconds);
}

}  // namespace

std::string repair_single_failures(const ProvenSchedule& running, double at_us, const fs::path& folder,
                                   const Communicator& communicator) {
  // A time that is wrong is wrong for all of them.
  live_state(running, at_us, {});
  on_root(communicator, [&] {
    make_folder(folder);
    return Bytes{};
  });
  const SingleFailures failures(running, at_us, folder);
  const auto outcomes = map_parts(communicator, std::vector<double>(failures.size(), 1.0),
                                  [&](std::size_t i) { return to_bytes(failures.row(i)); });
  Json rows = Json::array();
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
    rows.push_back(parse_json(to_text(outcome.value), "a repair"));
  }
  on_root(communicator, [&] {
    write_text_file(folder / "failures.json", format_json(rows));
    return Bytes{};
  });
  return table_of(rows, running.schedule.finish_us);
}

}  // namespace rondo::cli
