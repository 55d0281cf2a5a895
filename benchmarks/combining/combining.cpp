// ReduceScatter of all fabrics at 1 KB, 1 MB and 1 GB; AllReduce of 1 GB and of small sizes, and by known
// algorithms; groups and unequal parts.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"
#include "shapes.hpp"

namespace rondo::benchmarks::combining {
namespace {

using Rows = nlohmann::ordered_json;

struct Case {
  std::string fabric;
  std::string collective;
  std::string size;
  std::string engine = "";  ///< asked for by name
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* fabric : {"ring:gpus=8", "full:gpus=8", "star:chassis=8,gpus=1,uplink_GBps=50", "dgx1",
                             "dgx2-2", "ndv2-2", "ndv2-4", "rails:boxes=2", "rails:boxes=4", "torus:dims=8x8",
                             "mesh:dims=3x3", "mesh:dims=4x4", "rails:boxes=32", "torus:dims=16x16",
                             "star:chassis=32,intra=ndv2", "torus:dims=32x32", "rails:boxes=2,reduce=true"}) {
    cases.push_back({fabric, "allreduce", "1GB"});
  }
  for (const char* size : {"1KB", "64KB", "1MB", "16MB"}) {
    for (const char* fabric :
         {"ring:gpus=8", "full:gpus=8", "dgx1", "ndv2-2", "rails:boxes=2", "mesh:dims=4x4"})
      cases.push_back({fabric, "allreduce", size});
  }
  for (const char* size : {"64KB", "1MB", "16MB"}) {
    for (const char* fabric :
         {"rails:boxes=4,rails=2,reduce=true", "fat_tree:leaves=4,gpus=4,spines=2,reduce=true",
          "fat_tree:leaves=3,gpus=4,spines=3,uplink_GBps=10,reduce=true",
          "star:chassis=4,gpus=4,intra=switch,uplinks=2,reduce=true",
          "star:chassis=4,intra=ndv2,reduce=true"})
      cases.push_back({fabric, "allreduce", size});
  }
  const char* const star = "star:chassis=8,gpus=1,uplink_GBps=50";
  for (const char* size : {"1KB", "1MB"}) cases.push_back({star, "allreduce", size});
  for (const char* size : {"1KB", "1MB", "1GB"}) {
    for (const char* fabric : {"ring:gpus=8", "full:gpus=8", star, "dgx1"}) {
      for (const char* engine : {"ring", "tree", "direct", "recursive", "bruck", "exchange"})
        cases.push_back({fabric, "allreduce", size, engine});
    }
  }
  for (const std::string& fabric : every_fabric(RONDO_SOURCE_DIR)) {
    for (const char* size : {"1KB", "1MB", "1GB"}) cases.push_back({fabric, "reduce_scatter", size});
  }
  return cases;
}

/// Solves the cases that --only names.
class Runner {
 public:
  explicit Runner(const BenchmarkOptions& options)
      : options_(options), timeout_s_(options.number("--timeout", 1)) {
    std::printf("%-32s %-30s %14s %14s %9s %9s %7s %7s  %s\n", "fabric", "", "finish us", "bound us", "GB/s",
                "gap %", "chunks", "wall s", "engine");
  }

  void run(const std::string& fabric, const std::string& what, std::vector<std::string> arguments,
           Rows members, Rows& rows) {
    if ((fabric + " " + what).find(options_.own.at("--only")) == std::string::npos) return;
    arguments.insert(arguments.begin(), {"--topology", fabric});
    const CaseResult r = solve_case(options_.rondo, options_.ranks, arguments, timeout_s_);
    if (const std::string failure = r.failure(); !failure.empty()) {
      std::printf("%-32s %-30s failed: %s\n", fabric.c_str(), what.c_str(), failure.c_str());
      all_valid_ = false;
      return;
    }
    std::printf("%-32s %-30s %14.3f %14.3f %9.3f %9.3f %7d %7.2f  %s\n", fabric.c_str(), what.c_str(),
                r.report["finish_us"].get<double>(), r.report["lower_bound_us"].get<double>(),
                r.report["algorithm_bandwidth_GBps"].get<double>(), 100 * r.report["gap"].get<double>(),
                r.report["chunks"].get<int>(), r.wall_s, r.report["engine"].get<std::string>().c_str());
    std::fflush(stdout);
    members["wall_s"] = r.wall_s;
    members["report"] = r.report;
    rows.push_back(std::move(members));
  }

  bool all_valid() const { return all_valid_; }

 private:
  const BenchmarkOptions& options_;
  int timeout_s_;
  bool all_valid_ = true;
};

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options =
      parse_options(argc, argv, "combining", {{"--only", ""}, {"--timeout", "600"}});
  Runner runner(options);
  Rows rows = Rows::array();
  for (const Case& c : all_cases()) {
    std::vector<std::string> arguments{"--collective", c.collective, "--size", c.size};
    Rows members{{"fabric", c.fabric}, {"collective", c.collective}, {"size", c.size}};
    std::string what = c.collective + " " + c.size;
    if (!c.engine.empty()) {
      arguments.insert(arguments.end(), {"--engine", c.engine});
      members["asked"] = c.engine;
      what += " --engine " + c.engine;
    }
    runner.run(c.fabric, what, arguments, members, rows);
  }
  Rows shapes = Rows::array();
  const auto folder =
      std::filesystem::temp_directory_path() / ("rondo-benchmark-counts-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  for (const ShapeCase& c : shape_cases(folder))
    runner.run(c.fabric, c.name, c.arguments, {{"fabric", c.fabric}, {"case", c.name}}, shapes);
  std::filesystem::remove_all(folder);
  write_results(options, rows, {{"shapes", shapes}});
  return runner.all_valid() ? 0 : 1;
}

}  // namespace rondo::benchmarks::combining
