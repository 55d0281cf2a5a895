// AllToAll of 1 GB on symmetric fabrics of 16 to 1024 GPUs, and what symmetry leaves of the steady-state
// flow.

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "case_runner.hpp"
#include "fabrics.hpp"
#include "rondo/engines/steady_flow.hpp"
#include "rondo/pipeline/registry.hpp"

namespace {

using rondo::benchmarks::BenchmarkOptions;
using rondo::benchmarks::CaseResult;
using Json = nlohmann::ordered_json;

/// The whole linear program is solved as well.
const std::vector<std::string> kCompared = {"dgx2-2", "ndv2-4",         "star:chassis=4,intra=ndv2",
                                            "amd-2",  "torus:dims=8x8", "star:chassis=16,intra=ndv2"};
constexpr std::size_t kAnyColumns = 1'000'000;

Json flow_row(const std::string& fabric, bool use_symmetry, double time_limit_s) {
  using Clock = std::chrono::steady_clock;
  const auto topology = std::make_shared<const rondo::Topology>(rondo::cli::load_topology(fabric));
  const rondo::Demand demand = rondo::make_demand(rondo::Collective::alltoall, 1e9, topology->num_gpus(), 1);
  const auto start = Clock::now();
  rondo::SolveLimits limits;
  limits.time_limit_s = time_limit_s;
  const rondo::SteadyFlow flow =
      rondo::solve_steady_flow({topology, demand}, rondo::make_toolbox(), use_symmetry, limits, kAnyColumns);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Json row{{"fabric", fabric}, {"symmetry", use_symmetry}, {"columns", flow.columns}, {"seconds", seconds}};
  row["steady_us"] = flow.field ? Json(flow.field->finish_us) : Json(nullptr);
  std::printf("%-30s %-8s %8zu columns %9.3f s  ", fabric.c_str(), use_symmetry ? "orbits" : "whole",
              flow.columns, seconds);
  if (flow.field) {
    std::printf("%.9g us\n", flow.field->finish_us);
  } else {
    std::printf("%s\n", flow.why_not.c_str());
  }
  std::fflush(stdout);
  return row;
}

std::vector<std::string> fabrics_of_schedules() {
  std::vector<std::string> fabrics{"ndv2-2", "dgx2-2", "ndv2-4", "amd-2", "rails:boxes=4,rails=2"};
  for (const int groups : {16, 32, 64, 128}) {
    for (const char* more :
         {"star:chassis=%,intra=ndv2", "star:chassis=%", "rails:boxes=%", "rails:boxes=%,rails=2"}) {
      std::string fabric = more;
      fabrics.push_back(fabric.replace(fabric.find('%'), 1, std::to_string(groups)));
    }
  }
  return fabrics;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rondo::benchmarks;
  const BenchmarkOptions options =
      parse_options(argc, argv, "symmetry", {{"--timeout", "600"}, {"--only", ""}});
  const int timeout_s = options.number("--timeout", 1);
  const auto chosen = [&](const std::string& name) {
    return name.find(options.own.at("--only")) != std::string::npos;
  };

  Json flows = Json::array();
  bool all_well = true;
  for (const std::string& fabric : kCompared) {
    if (!chosen(fabric)) continue;
    const Json reduced = flow_row(fabric, true, timeout_s);
    const Json whole = flow_row(fabric, false, timeout_s);
    flows.push_back(reduced);
    flows.push_back(whole);
    if (whole["steady_us"].is_null()) continue;
    const double difference =
        std::abs(reduced["steady_us"].get<double>() / whole["steady_us"].get<double>() - 1);
    std::printf("  %.0f times fewer columns, relative difference %.1e\n",
                whole["columns"].get<double>() / reduced["columns"].get<double>(), difference);
    all_well = all_well && difference <= 1e-6;
  }

  std::printf("\n%-30s %14s %14s %9s %9s %9s %9s  %s\n", "fabric", "finish us", "bound us", "gap %",
              "bounds s", "wall s", "rss MB", "engine");
  Json rows = Json::array();
  for (const std::string& fabric : fabrics_of_schedules()) {
    if (!chosen(fabric)) continue;
    const CaseResult r =
        solve_case(options.rondo, options.ranks,
                   {"--topology", fabric, "--collective", "alltoall", "--size", "1GB"}, timeout_s);
    if (!r.failure().empty()) {
      std::printf("%-30s %s\n", fabric.c_str(), r.failure().c_str());
      all_well = false;
      continue;
    }
    std::printf("%-30s %14.3f %14.3f %9.4f %9.2f %9.2f %9.1f  %s\n", fabric.c_str(),
                r.report["finish_us"].get<double>(), r.report["lower_bound_us"].get<double>(),
                100 * r.report["gap"].get<double>(), r.report["wall_parts_s"]["bounds"].get<double>(),
                r.wall_s, r.report["peak_rss_bytes"]["sum"].get<double>() / 1e6,
                r.report["engine"].get<std::string>().c_str());
    std::fflush(stdout);
    rows.push_back({{"fabric", fabric}, {"wall_s", r.wall_s}, {"report", r.report}});
  }
  write_results(options, rows, {{"flows", flows}});
  return all_well ? 0 : 1;
}
