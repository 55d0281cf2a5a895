// ReduceScatter of all fabrics at 1 KB, 1 MB and 1 GB; AllReduce of 1 GB and of small sizes.

#include <cstdio>
#include <string>
#include <vector>

#include "case_runner.hpp"

namespace {

struct Case {
  std::string fabric;
  std::string collective;
  std::string size;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* fabric :
       {"ring:gpus=8", "full:gpus=8", "star:chassis=8,gpus=1,uplink_GBps=50", "dgx1", "dgx2-2", "ndv2-2",
        "ndv2-4", "rails:boxes=2", "rails:boxes=4", "torus:dims=8x8", "mesh:dims=3x3", "mesh:dims=4x4",
        "rails:boxes=32", "torus:dims=16x16", "star:chassis=32,intra=ndv2", "torus:dims=32x32"}) {
    cases.push_back({fabric, "allreduce", "1GB"});
  }
  for (const char* size : {"1KB", "64KB", "1MB", "16MB"}) {
    for (const char* fabric :
         {"ring:gpus=8", "full:gpus=8", "dgx1", "ndv2-2", "rails:boxes=2", "mesh:dims=4x4"})
      cases.push_back({fabric, "allreduce", size});
  }
  for (const std::string& fabric : rondo::benchmarks::every_fabric(RONDO_SOURCE_DIR)) {
    for (const char* size : {"1KB", "1MB", "1GB"}) cases.push_back({fabric, "reduce_scatter", size});
  }
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rondo::benchmarks;
  const BenchmarkOptions options =
      parse_options(argc, argv, "combining", {{"--only", ""}, {"--timeout", "600"}});
  const int timeout_s = options.number("--timeout", 1);
  std::printf("%-32s %-14s %-5s %14s %14s %9s %9s %7s %7s  %s\n", "fabric", "", "size", "finish us",
              "bound us", "GB/s", "gap %", "chunks", "wall s", "engine");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool all_valid = true;
  for (const Case& c : all_cases()) {
    const std::string name = c.fabric + " " + c.collective + " " + c.size;
    if (name.find(options.own.at("--only")) == std::string::npos) continue;
    const CaseResult r =
        solve_case(options.rondo, options.ranks,
                   {"--topology", c.fabric, "--collective", c.collective, "--size", c.size}, timeout_s);
    if (const std::string failure = r.failure(); !failure.empty()) {
      std::printf("%-32s %-14s %-5s failed: %s\n", c.fabric.c_str(), c.collective.c_str(), c.size.c_str(),
                  failure.c_str());
      all_valid = false;
      continue;
    }
    std::printf("%-32s %-14s %-5s %14.3f %14.3f %9.3f %9.3f %7d %7.2f  %s\n", c.fabric.c_str(),
                c.collective.c_str(), c.size.c_str(), r.report["finish_us"].get<double>(),
                r.report["lower_bound_us"].get<double>(), r.report["algorithm_bandwidth_GBps"].get<double>(),
                100 * r.report["gap"].get<double>(), r.report["chunks"].get<int>(), r.wall_s,
                r.report["engine"].get<std::string>().c_str());
    std::fflush(stdout);
    rows.push_back({{"fabric", c.fabric},
                    {"collective", c.collective},
                    {"size", c.size},
                    {"wall_s", r.wall_s},
                    {"report", r.report}});
  }
  write_results(options, rows);
  return all_valid ? 0 : 1;
}
