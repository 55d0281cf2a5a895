// TACCL's Table 2 (NSDI 2023): every sketch and collective by engine route, which heeds all of the sketch,
// and by auto on the links that it leaves, beside the seconds that the paper gives for synthesis.

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::taccl {
namespace {

struct Case {
  const char* collective;
  const char* node;  ///< profile
  const char* sketch;
  const char* size;  ///< so that a chunk is as large as the paper's: 1 MB, or 1 KB
  double paper_s;
  bool sums_relay = false;  ///< the sketch's relays say nothing of sums: links alone are heeded
};

const std::vector<Case> kCases{{"allgather", "dgx2", "dgx2-sk-1", "64MB", 35.8},
                               {"allgather", "dgx2", "dgx2-sk-2", "32KB", 11.3},
                               {"allgather", "ndv2", "ndv2-sk-1", "16MB", 2.6},
                               {"alltoall", "dgx2", "dgx2-sk-2", "32KB", 92.5},
                               {"alltoall", "ndv2", "ndv2-sk-1", "16MB", 1809.8},
                               {"alltoall", "ndv2", "ndv2-sk-2", "16KB", 8.4},
                               {"allreduce", "dgx2", "dgx2-sk-1", "64MB", 6.1, true},
                               {"allreduce", "dgx2", "dgx2-sk-2", "32KB", 127.8, true},
                               {"allreduce", "ndv2", "ndv2-sk-1", "16MB", 0.3}};

std::string name_of(const Case& c) {
  return fmt::format("{} {}", c.collective, c.sketch);
}

nlohmann::ordered_json run(const BenchmarkOptions& options, const Case& c) {
  const std::string jobs = std::string(RONDO_SOURCE_DIR) + "/jobs";
  const std::vector<std::string> problem{
      "--profile",       fmt::format("{}/profiles/{}.json", jobs, c.node),
      "--profile-chunk", "1MB",
      "--sketch",        fmt::format("{}/sketches/{}.json", jobs, c.sketch),
      "--collective",    c.collective,
      "--size",          c.size};
  nlohmann::ordered_json row{{"case", name_of(c)},
                             {"collective", c.collective},
                             {"sketch", c.sketch},
                             {"size", c.size},
                             {"paper_s", c.paper_s}};
  const int timeout_s = options.number("--timeout", 0);
  for (const std::string engine : {"route", "auto"}) {
    std::vector<std::string> arguments = problem;
    arguments.insert(arguments.end(), {"--engine", engine});
    const bool links = engine == "auto" || c.sums_relay;
    if (links) arguments.insert(arguments.end(), {"--sketch-parts", "links"});
    const CaseResult r = solve_case(options.rondo, options.ranks, arguments, timeout_s);
    const std::string failure = r.failure();
    row[engine]["parts"] = links ? "links" : "all";
    row[engine]["wall_s"] = r.wall_s;
    row[engine]["cpu_s"] = r.cpu_s;
    row[engine]["failure"] = failure;
    row[engine]["report"] = failure.empty() ? r.report : nlohmann::ordered_json();
    std::printf("%-24s %-6s %-6s %10.3f us %8.2f s  paper %7.1f s %s\n", name_of(c).c_str(), c.size,
                engine.c_str(), failure.empty() ? r.report["finish_us"].get<double>() : 0.0, r.wall_s,
                c.paper_s, failure.c_str());
    std::fflush(stdout);
  }
  return row;
}

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options = parse_options(argc, argv, "taccl", {{"--only", ""}, {"--timeout", "600"}});
  nlohmann::ordered_json earlier = nlohmann::ordered_json::array();
  if (std::ifstream file(options.json); file) earlier = nlohmann::ordered_json::parse(file)["rows"];
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Case& c : kCases) {
    if (name_of(c).find(options.own.at("--only")) != std::string::npos) {
      rows.push_back(run(options, c));
      continue;
    }
    for (const auto& row : earlier)
      if (row["case"] == name_of(c)) rows.push_back(row);
  }
  write_results(options, rows);
  return 0;
}

}  // namespace rondo::benchmarks::taccl
