// Linear programs of flows: what symmetry leaves of them, AllToAll of 1 GB on 16 to 1024 GPUs, damaged
// topologies by columns and by simplex, the same by columns on 1, 2 and 4 ranks, small sizes, PDHG on one
// rank and on more, flows in parts, and TE-CCL's Table 4 on stand-ins.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"
#include "comparisons.hpp"

namespace rondo::benchmarks::linear {
namespace {

struct Case {
  std::string section;
  std::vector<std::string> arguments;  ///< of `rondo solve`
  int ranks = 0;                       ///< 0: as asked for
  int repeat = 0;                      ///< 0: as asked for
  std::string name() const {
    std::string name = section;
    for (const std::string& argument : arguments) name += " " + argument;
    return name;
  }
};

using Arguments = std::vector<std::string>;

Arguments alltoall(const std::string& fabric, const std::string& size, const Arguments& more = {}) {
  Arguments all{"--topology", fabric, "--collective", "alltoall", "--size", size};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void add_schedules(std::vector<Case>& cases) {
  for (const char* fabric : {"ndv2-2", "dgx2-2", "ndv2-4", "amd-2", "rails:boxes=4,rails=2"})
    cases.push_back({"schedule", alltoall(fabric, "1GB")});
  for (const int groups : {16, 32, 64, 128}) {
    for (const char* family :
         {"star:chassis=%,intra=ndv2", "star:chassis=%", "rails:boxes=%", "rails:boxes=%,rails=2"}) {
      std::string fabric = family;
      fabric.replace(fabric.find('%'), 1, std::to_string(groups));
      cases.push_back({"schedule", alltoall(fabric, "1GB")});
    }
  }
}

/// A twentieth of the links at 50 to 90% of their bandwidth.
void add_damaged(std::vector<Case>& cases) {
  for (const char* fabric :
       {"star:chassis=32,intra=ndv2", "star:chassis=32", "rails:boxes=32", "rails:boxes=32,rails=2"}) {
    cases.push_back({"damaged", alltoall(fabric, "1GB",
                                         {"--lp-solver", "columns", "--gap", "0.3%", "--degrade",
                                          "0.05:0.5..0.9", "--seed", "1"})});
  }
}

/// Columns: the same schedule on any number of ranks.
void add_ranks(std::vector<Case>& cases) {
  for (const char* fabric : {"star:chassis=8,intra=ndv2", "rails:boxes=8", "star:chassis=32"}) {
    for (const int ranks : {1, 2, 4}) {
      cases.push_back(
          {"ranks",
           alltoall(fabric, "1GB",
                    {"--lp-solver", "columns", "--gap", "5%", "--degrade", "0.05:0.5..0.9", "--seed", "2"}),
           ranks});
    }
  }
}

/// Small sizes, where latency counts most: by `auto`, and the time-expanded optimum on epochs that divide the
/// latencies.
void add_small(std::vector<Case>& cases) {
  for (const char* size : {"1KB", "4KB", "16KB"}) {
    cases.push_back({"small", alltoall("ndv2-2", size)});
    for (const char* epoch_us : {"0.1", "0.05"})
      cases.push_back({"small", alltoall("ndv2-2", size, {"--engine", "lp", "--epoch", epoch_us}), 1});
  }
}

constexpr const char* kScaling = "pdhg-scaling";
constexpr int kScalingRuns = 5;

/// Time-expanded flows without symmetry: one that simplex still solves, and one of millions of columns.
void add_pdhg(std::vector<Case>& cases) {
  const auto whole = [](const char* fabric, const char* solver, const Arguments& more) {
    Arguments own{"--engine", "lp", "--symmetry", "off", "--chunks", "1", "--lp-solver", solver};
    own.insert(own.end(), more.begin(), more.end());
    return alltoall(fabric, "1MB", own);
  };
  for (const int ranks : {1, 2})
    cases.push_back({kScaling, whole("ndv2-2", "pdhg", {"--lp-tolerance", "1e-4"}), ranks, kScalingRuns});
  cases.push_back({"pdhg-clp", whole("ndv2-2", "clp", {}), 1});
  cases.push_back(
      {"pdhg-large",
       whole("star:chassis=8,intra=ndv2", "pdhg", {"--lp-tolerance", "1e-3", "--epoch-multiplier", "7.3"}),
       2});
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// Of the rows of a section, by their ranks.
Json median_seconds(const Json& rows, const std::string& section) {
  std::map<int, std::vector<double>> seconds;
  for (const Json& row : rows) {
    if (row["section"] == section && row.contains("report"))
      seconds[row["ranks"]].push_back(row["report"]["metrics"]["solver_s"]);
  }
  Json medians = Json::array();
  for (const auto& [ranks, runs] : seconds) {
    const double s = median(runs);
    medians.push_back({{"ranks", ranks}, {"runs", runs.size()}, {"solver_s", s}});
    std::printf("%s: %d ranks, median of %zu runs %.3f s, %.2f times as fast as on the fewest\n",
                section.c_str(), ranks, runs.size(), s, medians[0]["solver_s"].get<double>() / s);
  }
  return medians;
}

/// 64 GPUs by the time-expanded linear program: whole with and without symmetry, and in parts on several
/// numbers of ranks.
void add_parts(std::vector<Case>& cases) {
  const Arguments engine{"--engine",           "lp", "--epoch",         "slowest_link",
                         "--epoch-multiplier", "16", "--epoch-spacing", "coarse",
                         "--chunks",           "1"};
  const auto add = [&](const char* fabric, const Arguments& more, int ranks) {
    Arguments own = engine;
    own.insert(own.end(), more.begin(), more.end());
    cases.push_back({"parts", alltoall(fabric, "1GB", own), ranks});
  };
  for (const char* fabric : {"star:chassis=8,intra=ndv2", "rails:boxes=8,rails=2",
                             "star:chassis=4,gpus=16,intra=switch,uplinks=4"}) {
    add(fabric, {}, 2);
    add(fabric, {"--symmetry", "off"}, 1);
    for (const int ranks : {1, 2, 4}) add(fabric, {"--decompose", "pop", "--parts", "4"}, ranks);
    // The chassis are the parts: eight of them, or four.
    for (const int ranks : {1, 2, 4}) add(fabric, {"--decompose", "ncflow"}, ranks);
  }
}

/// Chassis of 4 and of 2 GPUs around a switch: public stand-ins for TE-CCL's Internal 1 and Internal 2, of
/// which only the latencies are published.
void add_stand_ins(std::vector<Case>& cases) {
  const auto fabric = [](int gpus_a_chassis, int gpus) {
    const std::string per_chassis = std::to_string(gpus_a_chassis);
    return "star:chassis=" + std::to_string(gpus / gpus_a_chassis) + ",gpus=" + per_chassis +
           ",intra_latency_us=0.6,uplinks=" + per_chassis + ",uplink_latency_us=0.75";
  };
  for (const int gpus : {16, 32, 64, 128}) cases.push_back({"teccl", alltoall(fabric(4, gpus), "16MB")});
  for (const int gpus : {128, 256}) cases.push_back({"teccl", alltoall(fabric(2, gpus), "16MB")});
  cases.push_back({"teccl", alltoall(fabric(4, 64), "16MB", {"--engine", "lp"})});
}

/// Rows of an earlier run whose cases are not chosen this time.
Json kept_rows(const Json& rows, const auto& chosen) {
  Json kept = Json::array();
  for (const Json& row : rows) {
    if (row.contains("case") && !chosen(row["case"].template get<std::string>())) kept.push_back(row);
  }
  return kept;
}

/// Steps between the optimum of the linear program and the schedule, where the engine tells them.
std::string losses(const Json& metrics) {
  std::string text;
  for (const char* step : {"steady_us", "model_finish_us", "rounded_us", "realised_us"}) {
    if (!metrics.contains(step)) continue;
    char number[64];
    std::snprintf(number, sizeof number, " %s %.6g", step, metrics[step].get<double>());
    text += number;
  }
  return text;
}

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options =
      parse_options(argc, argv, "linear", {{"--timeout", "600"}, {"--only", ""}, {"--repeat", "1"}});
  const int timeout_s = options.number("--timeout", 1);
  const auto chosen = [&](const std::string& name) {
    return name.find(options.own.at("--only")) != std::string::npos;
  };

  Json earlier{{"rows", Json::array()}, {"flows", Json::array()}};
  if (!options.own.at("--only").empty()) {
    if (std::ifstream file(options.json); file) earlier = Json::parse(file);
  }
  Json flows = kept_rows(earlier["flows"], chosen);
  bool all_well = true;
  const auto compare = [&](const std::string& what, const std::string& fabric, const auto& measure) {
    const std::string name = what + " " + fabric;
    if (!chosen(name)) return;
    Json row{{"case", name}};
    row.update(measure(fabric));
    flows.push_back(row);
    if (row.contains("difference") && !row["difference"].is_null())
      all_well = all_well && row["difference"].get<double>() <= 1e-6;
  };
  for (const char* fabric : {"dgx2-2", "ndv2-4", "star:chassis=4,intra=ndv2", "amd-2", "torus:dims=8x8",
                             "star:chassis=16,intra=ndv2"})
    compare("orbits", fabric, [&](const std::string& f) { return compare_orbits(f, timeout_s); });
  for (const char* fabric :
       {"ndv2-2", "dgx2-2", "ndv2-4", "star:chassis=4,intra=ndv2", "star:chassis=16,intra=ndv2"})
    compare("time", fabric, [&](const std::string& f) { return compare_orbits_over_time(f, timeout_s); });
  for (const char* fabric : {"star:chassis=4,intra=ndv2", "rails:boxes=4", "torus:dims=4x8",
                             "star:chassis=8,intra=ndv2", "rails:boxes=8", "torus:dims=8x8"})
    compare("columns", fabric, [&](const std::string& f) { return compare_columns(f, timeout_s); });
  for (const char* fabric :
       {"star:chassis=128,intra=ndv2", "star:chassis=128", "rails:boxes=128", "torus:dims=32x32"})
    compare("bound", fabric, [&](const std::string& f) { return measure_bound(options.rondo, f); });

  std::vector<Case> cases;
  add_schedules(cases);
  add_damaged(cases);
  add_ranks(cases);
  add_small(cases);
  add_pdhg(cases);
  add_parts(cases);
  add_stand_ins(cases);
  Json rows = kept_rows(earlier["rows"], chosen);
  std::map<std::string, std::string> digests;  // by case, whatever the ranks
  for (const Case& c : cases) {
    if (!chosen(c.name())) continue;
    const int ranks = c.ranks > 0 ? c.ranks : options.ranks;
    const int repeat = c.repeat > 0 ? c.repeat : options.number("--repeat", 1);
    for (int k = 0; k < repeat; ++k) {
      const CaseResult r = solve_case(options.rondo, ranks, c.arguments, timeout_s);
      std::printf("%s, %d ranks\n", c.name().c_str(), ranks);
      if (!r.failure().empty()) {
        std::printf("  %s\n", r.failure().c_str());
        rows.push_back({{"case", c.name()},
                        {"section", c.section},
                        {"ranks", ranks},
                        {"timeout_s", timeout_s},
                        {"failure", r.failure()}});
        all_well = false;
        continue;
      }
      std::printf("  finish %.3f us, bound %.3f us, gap %.4f %%, bounds %.2f s, wall %.2f s, %.0f MB, %s%s\n",
                  r.report["finish_us"].get<double>(), r.report["lower_bound_us"].get<double>(),
                  100 * r.report["gap"].get<double>(), r.report["wall_parts_s"]["bounds"].get<double>(),
                  r.wall_s, r.report["peak_rss_bytes"]["sum"].get<double>() / 1e6,
                  r.report["engine"].get<std::string>().c_str(), losses(r.report["metrics"]).c_str());
      const auto digest = r.report["schedule_digest"].get<std::string>();
      if (c.section.rfind("pdhg", 0) != 0 && digests.try_emplace(c.name(), digest).first->second != digest) {
        std::printf("  another schedule than on other ranks\n");
        all_well = false;
      }
      std::fflush(stdout);
      rows.push_back({{"case", c.name()},
                      {"section", c.section},
                      {"ranks", ranks},
                      {"wall_s", r.wall_s},
                      {"report", r.report}});
      save_results(options, rows, {{"flows", flows}});
    }
  }
  write_results(options, rows, {{"flows", flows}, {"pdhg_scaling", median_seconds(rows, kScaling)}});
  return all_well ? 0 : 1;
}

}  // namespace rondo::benchmarks::linear
