// Engine rounds: windows of the best schedule; A*, AllGather: where its models improve or make the plan,
// whole, by PoP and by NCFlow.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"
#include "round_work.hpp"

namespace rondo::benchmarks::rounds {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  std::string fabric;
  std::string decompose;
  std::vector<std::string> more = {};  ///< options of rondo solve
  std::string size = "1GB";
  std::string collective = "allgather";
  bool in_windows() const { return decompose == "windows"; }

  /// As a user would put it: "dgx1 200KB none --chunks 3".
  std::string name() const {
    std::string name = fabric + ' ' + size + ' ' + decompose;
    if (collective != "allgather") name += ' ' + collective;
    for (const std::string& word : more) name += ' ' + word;
    return name;
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> words{"--topology", fabric, "--collective", collective,
                                   "--size",     size,   "--engine",     "rounds"};
    if (!in_windows()) {
      words.insert(words.end(), {"--decompose", decompose});
      if (std::ranges::find(more, "--start") == more.end()) words.insert(words.end(), {"--start", "list"});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  // Sizes at which auto leaves a gap of more than 0.1 % on most fabrics.
  for (const char* fabric : {"rails:boxes=2", "rails:boxes=4", "rails:boxes=8", "rails:boxes=4,rails=2"})
    cases.push_back({fabric, "windows", {}, "1MB"});
  cases.push_back({"star:chassis=4,intra=ndv2,uplinks=2", "windows", {"--degrade", "0.05:0.5"}, "1MB"});
  cases.push_back({"torus:dims=8x8", "windows", {"--degrade", "0.05:0.5..0.9"}, "1MB"});
  for (const char* fabric : {"amd-2", "ndv2-4"}) cases.push_back({fabric, "windows", {}, "1MB"});
  cases.push_back({"torus:dims=4x4", "windows", {"--degrade", "0.1:0.5"}, "1MB"});
  cases.push_back({"rails:boxes=4", "windows", {"--degrade", "0.05:0.5"}, "1MB", "alltoall"});
  for (const char* fabric : {"rails:boxes=16", "dragonfly:groups=9"})
    cases.push_back({fabric, "windows", {}, "1MB"});
  for (const char* fabric :
       {"rails:boxes=2", "rails:boxes=4", "rails:boxes=8", "rails:boxes=4,rails=2", "amd-2", "ndv2-4"})
    cases.push_back({fabric, "windows", {}, "16MB"});
  cases.push_back({"star:chassis=4,intra=ndv2,uplinks=2", "windows", {"--degrade", "0.05:0.5"}, "16MB"});
  cases.push_back({"torus:dims=8x8", "windows", {"--degrade", "0.05:0.5..0.9"}, "16MB"});
  cases.push_back({"torus:dims=4x4", "windows", {"--degrade", "0.1:0.5"}, "16MB"});
  // The models improve what the list scheduler found.
  cases.push_back({"dgx1", "none", {"--chunks", "3"}, "200KB"});
  cases.push_back({"torus:dims=3x3", "none", {"--chunks", "1"}});
  cases.push_back({"dgx1", "pop", {"--parts", "2", "--chunks", "3"}, "200KB"});
  cases.push_back(
      {"mesh:dims=2x4",
       "ncflow",
       {"--parts", "2", "--chunks", "2", "--round-epochs", "4", "--degrade", "0.2:0.5", "--seed", "2"},
       "90KB"});
  // The models have nothing to start from.
  cases.push_back({"dgx1", "none", {"--chunks", "6", "--start", "none"}});
  for (const char* fabric : {"torus:dims=3x3", "star:chassis=2,gpus=4"}) {
    cases.push_back({fabric, "none", {"--chunks", "4", "--start", "none"}});
  }
  for (const char* fabric : {"rails:boxes=4", "rails:boxes=8"}) {
    cases.push_back({fabric, "none"});
    cases.push_back({fabric, "pop", {"--parts", "4"}});
    cases.push_back({fabric, "ncflow"});
  }
  return cases;
}

Json row_of(const Case& c, const CaseResult& r) {
  Json row{{"case", c.name()},         {"fabric", c.fabric}, {"size", c.size},
           {"decompose", c.decompose}, {"options", c.more},  {"wall_s", r.wall_s}};
  if (!r.failure().empty()) {
    row["failed"] = r.failure();
    return row;
  }
  const RoundWork work = round_work(r.report);
  Json changing = Json::array();    // the numbers of rounds that took what models found
  Json replanting = Json::array();  // and of those whose schedule ends earlier by replanting
  for (const Json& round : r.report["rounds"]) {
    const bool changes = std::ranges::any_of(
        round["parts"], [](const Json& part) { return part["transfers_changed"].get<std::int64_t>() > 0; });
    if (changes) changing.push_back(round["round"]);
    const bool replants = std::ranges::any_of(round["parts"], [](const Json& part) {
      return part["part"] == "replanting" && part["outcome"] == "earlier";
    });
    if (replants) replanting.push_back(round["round"]);
  }
  row["changing_rounds"] = std::move(changing);
  row["replanting_rounds"] = std::move(replanting);
  Json report = r.report;
  report.erase("rounds");  // hundreds of parts, where `work` has their sums
  const double evenly_s = work.part_seconds() / report["ranks"].get<int>();
  const double busiest_s = work.busiest_seconds();
  row["rounds"] = work.rounds.size();
  row["parts"] = {{"solved", work.solved}, {"copied", work.copied}, {"kept", work.kept}};
  row["transfers_changed"] = work.transfers_changed;
  row["round_files_bytes"] = r.round_files_bytes;
  row["exchange_bytes_a_round"] =
      report["metrics"]["exchange_bytes"].get<double>() / static_cast<double>(work.rounds.size());
  row["balance"] = {{"busiest_rank_s", busiest_s},
                    {"busiest_rank_by_stages_s", work.staged_seconds()},
                    {"all_parts_over_ranks_s", evenly_s},
                    {"busiest_over_even", busiest_s > 0 ? Json(busiest_s / evenly_s) : Json()}};
  row["report"] = std::move(report);
  return row;
}

void print(const Json& row) {
  const auto name = row["case"].get<std::string>();
  if (row.contains("failed")) {
    std::printf("%-52s failed: %s after %.1f s\n", name.c_str(), row["failed"].get<std::string>().c_str(),
                row["wall_s"].get<double>());
    return;
  }
  const Json& report = row["report"];
  const Json& parts = row["parts"];
  const Json& metrics = report["metrics"];
  char start[32] = "-";
  if (metrics.contains("start_finish_us")) {
    std::snprintf(start, sizeof start, "%.3f", metrics["start_finish_us"].get<double>());
  }
  const Json& balance = row["balance"];
  std::printf("%-52s %13.3f %13.3f %8.3f %13s %6d %8.2f %8.1f %6d %6d %6d %8lld %9.1f %8.2f %8.2f %8.2f\n",
              name.c_str(), report["finish_us"].get<double>(), report["lower_bound_us"].get<double>(),
              100 * report["gap"].get<double>(), start, row["rounds"].get<int>(), row["wall_s"].get<double>(),
              report["peak_rss_bytes"]["sum"].get<double>() / 1e6, parts["solved"].get<int>(),
              parts["copied"].get<int>(), parts["kept"].get<int>(), row["transfers_changed"].get<long long>(),
              row["round_files_bytes"].get<double>() / 1e3, balance["busiest_rank_s"].get<double>(),
              balance["all_parts_over_ranks_s"].get<double>(),
              row["exchange_bytes_a_round"].get<double>() / 1e3);
}

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options =
      parse_options(argc, argv, "rounds", {{"--only", ""}, {"--timeout", "600"}});
  const int timeout_s = options.number("--timeout", 1);

  std::vector<Case> cases;
  for (Case& c : all_cases()) {
    if (c.name().find(options.own.at("--only")) != std::string::npos) cases.push_back(std::move(c));
  }
  if (cases.empty()) {
    std::fprintf(stderr, "rounds: no case has %s in its name; there are\n", options.own.at("--only").c_str());
    for (const Case& c : all_cases()) std::fprintf(stderr, "  %s\n", c.name().c_str());
    return 64;
  }

  std::printf("%d ranks; parts: solved by a model, copied from an equal one, kept as in the start\n",
              options.ranks);
  std::printf(
      "busiest: sum over the rounds of the part seconds on the rank that has most; even: of all part");
  std::printf(" seconds, divided by the ranks\n\n");
  std::printf("%-52s %13s %13s %8s %13s %6s %8s %8s %6s %6s %6s %8s %9s %8s %8s %8s\n", "case", "finish us",
              "bound us", "gap %", "start us", "rounds", "wall s", "rss MB", "solved", "copied", "kept",
              "changed", "files KB", "busy s", "even s", "KB/round");
  Json rows = Json::array();
  bool all_valid = true;
  for (const Case& c : cases) {
    const CaseResult r = solve_case(options.rondo, options.ranks, c.arguments(), timeout_s);
    rows.push_back(row_of(c, r));
    print(rows.back());
    std::fflush(stdout);
    all_valid = all_valid && r.failure().empty();
    save_results(options, rows);  // the large cases take long: what is done stays if one stops the rest
  }
  write_results(options, rows);
  return all_valid ? 0 : 1;
}

}  // namespace rondo::benchmarks::rounds
