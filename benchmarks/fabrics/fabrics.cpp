// Every shipped topology and some generated ones, AllGather and AllToAll, at 1 KB, 1 MB and 1 GB: finish,
// bound, gap.

#include <cstdio>
#include <string>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::fabrics {

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options = parse_options(argc, argv, "fabrics");
  std::printf("%-24s %-9s %-5s %14s %14s %9s %7s %7s %9s  %s\n", "fabric", "", "size", "finish us",
              "bound us", "gap %", "chunks", "wall s", "rss MB", "engine");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool all_valid = true;
  for (const std::string& fabric : every_fabric(RONDO_SOURCE_DIR)) {
    for (const char* collective : {"allgather", "alltoall"}) {
      for (const char* size : {"1KB", "1MB", "1GB"}) {
        const CaseResult r = solve_case(options.rondo, options.ranks,
                                        {"--topology", fabric, "--collective", collective, "--size", size});
        if (r.exit_code != 0 || !r.verified) {
          std::printf("%-24s %-9s %-5s failed: exit code %d, verified %d\n", fabric.c_str(), collective, size,
                      r.exit_code, r.verified);
          all_valid = false;
          continue;
        }
        std::printf("%-24s %-9s %-5s %14.3f %14.3f %9.3f %7d %7.2f %9.1f  %s\n", fabric.c_str(), collective,
                    size, r.report["finish_us"].get<double>(), r.report["lower_bound_us"].get<double>(),
                    100 * r.report["gap"].get<double>(), r.report["chunks"].get<int>(), r.wall_s,
                    r.report["peak_rss_bytes"]["sum"].get<double>() / 1e6,
                    r.report["engine"].get<std::string>().c_str());
        std::fflush(stdout);
        rows.push_back({{"fabric", fabric},
                        {"collective", collective},
                        {"size", size},
                        {"wall_s", r.wall_s},
                        {"report", r.report}});
      }
    }
  }
  write_results(options, rows);
  return all_valid ? 0 : 1;
}

}  // namespace rondo::benchmarks::fabrics
