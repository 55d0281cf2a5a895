// Whether runs end within their time limits, with a schedule: ten problems whose undisturbed runs, or single
// steps of them, take longer than the limit, by different engines.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::limits {
namespace {

using Arguments = std::vector<std::string>;

struct Case {
  std::string fabric;
  std::string collective;
  std::string size;
  Arguments options = {};
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"fat_tree:leaves=16,gpus=16,spines=8", "alltoall", "1GB"},
      {"dragonfly:groups=9,routers=4,hosts=4", "alltoall", "1GB"},
      {"rails:boxes=16", "alltoall", "256MB", {"--engine", "flow", "--degrade", "0.05:0.5"}},
      {"rails:boxes=32", "allgather", "1GB"},
      {"star:chassis=16,intra=ndv2,uplinks=2", "allgather", "1GB", {"--degrade", "0.05:0.5"}},
      {"torus:dims=8x8", "allgather", "64MB", {"--engine", "list", "--degrade", "0.1:0.5..0.9"}},
      {"torus:dims=4x4x4", "alltoall", "16MB", {"--engine", "lp"}},
      {"torus:dims=8x8", "alltoall", "1GB", {"--engine", "list"}},
      {"ndv2-4", "allgather", "16MB", {"--engine", "rounds"}},
      {"dgx1", "allgather", "25KB", {"--engine", "milp", "--chunks", "3"}}};
  return all;
}

std::string name_of(const Case& c) {
  std::string name = c.fabric + " " + c.collective + " " + c.size;
  for (const std::string& option : c.options) name += " " + option;
  return name;
}

/// False where the run failed or ended later than a twentieth and a second after its limit.
bool run(const BenchmarkOptions& options, const Case& c, int ranks, int limit_s,
         nlohmann::ordered_json& rows) {
  Arguments arguments{"--topology", c.fabric, "--collective", c.collective,
                      "--size",     c.size,   "--time-limit", std::to_string(limit_s)};
  arguments.insert(arguments.end(), c.options.begin(), c.options.end());
  const CaseResult r = solve_case(options.rondo, ranks, arguments, 10 * limit_s);
  const bool in_time = r.wall_s <= 1.05 * limit_s + 1;
  const std::string what = !r.failure().empty() ? r.failure() : in_time ? "" : "late";
  std::printf("%-75s %5d %5d %7.2f", name_of(c).c_str(), ranks, limit_s, r.wall_s);
  if (r.failure().empty()) {
    std::printf(" %8.3f  %-24s", 100 * r.report["gap"].get<double>(),
                r.report["engine"].get<std::string>().c_str());
    rows.push_back({{"case", name_of(c)},
                    {"ranks", ranks},
                    {"limit_s", limit_s},
                    {"wall_s", r.wall_s},
                    {"in_time", in_time},
                    {"gap", r.report["gap"]},
                    {"engine", r.report["engine"]},
                    {"limits_hit", r.report["limits_hit"]},
                    {"wall_parts_s", r.report["wall_parts_s"]}});
  }
  std::printf(" %s\n", what.c_str());
  return what.empty();
}

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options = parse_options(argc, argv, "limits", {{"--only", ""}, {"--seconds", "0"}});
  const int asked_s = options.number("--seconds", 0);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool all_in_time = true;
  std::printf("%-75s %5s %5s %7s %8s  %s\n", "case", "ranks", "limit", "wall s", "gap %", "engine");
  for (const int limit_s : asked_s > 0 ? std::vector{asked_s} : std::vector{5, 20}) {
    for (const int ranks : options.ranks > 1 ? std::vector{1, options.ranks} : std::vector{1}) {
      for (const Case& c : cases()) {
        if (name_of(c).find(options.own.at("--only")) == std::string::npos) continue;
        all_in_time = run(options, c, ranks, limit_s, rows) && all_in_time;
        std::fflush(stdout);
      }
    }
  }
  write_results(options, rows);
  return all_in_time ? 0 : 1;
}

}  // namespace rondo::benchmarks::limits
