// What large-neighbourhood search closes of the gap that list scheduling (all engines, or the one asked for)
// leaves, within a minute, and what a second rank brings: with work limited instead of time, the same
// schedule in how much less.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::improvement {
namespace {

using Arguments = std::vector<std::string>;

struct Case {
  std::string fabric;
  Arguments options = {};
};

std::vector<Case> cases() {
  std::vector<Case> all{{"ndv2-4"}, {"dragonfly"}, {"amd-2"}, {"rails:boxes=4,rails=2"}};
  for (const char* fabric : {"torus:dims=8x8", "rails:boxes=8", "star:chassis=8,intra=ndv2,uplinks=2"}) {
    for (const char* damage : {"0.05:0.5", "0.05:0.9"}) all.push_back({fabric, {"--degrade", damage}});
  }
  return all;
}

Arguments arguments_of(const Case& c, const Arguments& limit) {
  Arguments arguments{"--topology", c.fabric, "--collective", "allgather", "--size", "1GB"};
  arguments.insert(arguments.end(), c.options.begin(), c.options.end());
  arguments.insert(arguments.end(), limit.begin(), limit.end());
  return arguments;
}

std::string name_of(const Case& c) {
  std::string name = c.fabric;
  for (const std::string& option : c.options) name += " " + option;
  return name;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

bool selected(const BenchmarkOptions& options, const Case& c) {
  return name_of(c).find(options.own.at("--only")) != std::string::npos;
}

/// Of a report: what there was before, and the share of its gap that is closed.
nlohmann::ordered_json gains(const nlohmann::ordered_json& report) {
  const auto number = [&](const char* name) { return report[name].get<double>(); };
  const auto& metrics = report["metrics"];
  const double bound = number("lower_bound_us");
  const double after = number("finish_us");
  const double before = metrics.value("finish_before_improvement_us", after);
  return {{"gap_before", before / bound - 1},
          {"gap", after / bound - 1},
          {"closed", before > after ? (before - after) / (before - bound) : 0.0},
          {"tries", metrics.value("improvement_tries", 0.0)},
          {"chunks_before", metrics.value("chunks_before_improvement", number("chunks"))},
          {"chunks", number("chunks")}};
}

bool within_a_minute(const BenchmarkOptions& options, nlohmann::ordered_json& rows) {
  std::printf("%-48s %12s %9s %9s %8s %6s %7s %7s\n", "fabric", "bound us", "before %", "after %", "closed %",
              "tries", "chunks", "wall s");
  bool all_valid = true;
  for (const Case& c : cases()) {
    if (!selected(options, c)) continue;
    const Arguments search{"--engine", options.own.at("--engine"), "--time-limit",
                           options.own.at("--seconds")};
    const CaseResult r = solve_case(options.rondo, options.ranks, arguments_of(c, search));
    if (!r.failure().empty()) {
      std::printf("%-48s %s\n", name_of(c).c_str(), r.failure().c_str());
      all_valid = false;
      continue;
    }
    nlohmann::ordered_json row{{"case", name_of(c)}, {"ranks", options.ranks}, {"wall_s", r.wall_s}};
    row.update(gains(r.report));
    std::printf("%-48s %12.3f %9.4f %9.4f %8.1f %6.0f %7.0f %7.1f\n", name_of(c).c_str(),
                r.report["lower_bound_us"].get<double>(), 100 * row["gap_before"].get<double>(),
                100 * row["gap"].get<double>(), 100 * row["closed"].get<double>(), row["tries"].get<double>(),
                row["chunks"].get<double>(), r.wall_s);
    std::fflush(stdout);
    row["report"] = r.report;
    rows.push_back(row);
    save_results(options, rows);
  }
  return all_valid;
}

bool on_one_and_two_ranks(const BenchmarkOptions& options, const Case& c, nlohmann::ordered_json& rows) {
  const int repeats = options.number("--repeat", 0);
  const Arguments work{"--improve-work", options.own.at("--work")};
  std::vector<double> seconds[2];
  nlohmann::ordered_json digests = nlohmann::ordered_json::array();
  for (int k = 0; k < repeats; ++k) {
    for (const int ranks : {1, 2}) {
      const CaseResult r = solve_case(options.rondo, ranks, arguments_of(c, work));
      if (!r.failure().empty()) {
        std::printf("%s on %d ranks: %s\n", name_of(c).c_str(), ranks, r.failure().c_str());
        return false;
      }
      seconds[ranks - 1].push_back(r.wall_s);
      const auto& digest = r.report["schedule_digest"];
      if (std::ranges::find(digests, digest) == digests.end()) digests.push_back(digest);
    }
  }
  const double one = median(seconds[0]);
  const double two = median(seconds[1]);
  std::printf("%s, --improve-work %s: median of %d: %.2f s on 1 rank, %.2f s on 2: %.2f; %zu digest(s)\n",
              name_of(c).c_str(), work.back().c_str(), repeats, one, two, two / one, digests.size());
  rows.push_back({{"case", name_of(c)},
                  {"improve_work", work.back()},
                  {"seconds_on_1_rank", seconds[0]},
                  {"seconds_on_2_ranks", seconds[1]},
                  {"ratio_of_medians", two / one},
                  {"digests", digests}});
  return digests.size() == 1;
}

int run(const BenchmarkOptions& options) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  nlohmann::ordered_json ratios = nlohmann::ordered_json::array();
  bool good = options.number("--seconds", 0) == 0 || within_a_minute(options, rows);
  for (const Case& c :
       {Case{"ndv2-4"}, Case{"torus:dims=8x8", {"--degrade", "0.05:0.5"}}, Case{"rails:boxes=4,rails=2"},
        Case{"star:chassis=8,intra=ndv2,uplinks=2", {"--degrade", "0.05:0.9"}}}) {
    if (selected(options, c) && options.number("--repeat", 0) > 0)
      good = on_one_and_two_ranks(options, c, ratios) && good;
  }
  write_results(options, rows, {{"one_and_two_ranks", ratios}});
  return good ? 0 : 1;
}

}  // namespace

/// --seconds: the rest of the minute is for what the search does not see: starting, replay, writing.
int benchmark(int argc, char** argv) {
  return run(parse_options(
      argc, argv, "improvement",
      {{"--only", ""}, {"--engine", "auto"}, {"--seconds", "54"}, {"--repeat", "5"}, {"--work", "1e7"}}));
}

}  // namespace rondo::benchmarks::improvement
