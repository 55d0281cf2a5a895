// Strong scaling of whole commands: the same problem on 1 rank and on --ranks, in turn, and what a run on one
// rank has recorded (--work-log), replayed on up to 256 ranks over a network of given latency and bandwidth.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"
#include "replayed_work.hpp"

namespace rondo::benchmarks::scaling {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  std::string name;
  std::vector<std::string> arguments;
};

std::vector<Case> cases() {
  const std::vector<std::string> search{"--topology", "amd-2", "--collective", "allgather", "--size", "1MB"};
  std::vector<Case> all{{"local search, 8 streams", search}, {"local search, 256 streams", search}};
  all.back().arguments.insert(all.back().arguments.end(), {"--streams", "256"});
  all.push_back({"local search of a damaged torus, 256 streams",
                 {"--topology", "torus:dims=8x8", "--degrade", "0.05:0.9", "--collective", "allgather",
                  "--size", "1GB", "--chunks", "4", "--improve-work", "2e7", "--streams", "256"}});
  all.push_back({"rounds, NCFlow",
                 {"--topology", "star:chassis=16,intra=ndv2", "--collective", "allgather", "--size", "1GB",
                  "--engine", "rounds", "--start", "list", "--decompose", "ncflow"}});
  all.push_back({"columns",
                 {"--topology", "torus:dims=8x8", "--degrade", "0.05:0.5", "--collective", "alltoall",
                  "--size", "1GB", "--engine", "flow", "--lp-solver", "columns"}});
  // 1,024 GPUs. Few chunks, so that thousands of neighbours are made in minutes.
  const std::vector<std::string> large{"--topology",   "torus:dims=32x32", "--degrade", "0.05:0.5..0.9",
                                       "--collective", "broadcast",        "--size",    "1GB"};
  all.push_back({"local search, 1,024 GPUs, 4096 streams", large});
  all.back().arguments.insert(all.back().arguments.end(), {"--chunks", "16", "--engine", "list", "--streams",
                                                           "4096", "--improve-work", "4e8"});
  return all;
}

/// On one rank; null where the command failed.
Json recorded(const BenchmarkOptions& options, const Case& c, int timeout_s) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("rondo-work-log-" + std::to_string(getpid()) + ".json");
  std::vector<std::string> arguments = c.arguments;
  arguments.insert(arguments.end(), {"--work-log", file.string()});
  const CaseResult r = solve_case(options.rondo, 1, arguments, timeout_s);
  if (!r.failure().empty()) {
    std::printf("%s: %s\n", c.name.c_str(), r.failure().c_str());
    return nullptr;
  }
  std::ifstream stream(file);
  Json log = Json::parse(stream);
  std::filesystem::remove(file);
  return log;
}

Json replay_rows(const Case& c, const Json& log, const Network& network) {
  const ReplayedRun one = replayed(log, 1, network);
  std::size_t parts = 0;
  for (const Json& step : log.at("steps")) parts += step.at("parts").size();
  std::printf("\n%s: %zu steps, %zu parts; replayed, %g us and %g GB/s\n", c.name.c_str(),
              log.at("steps").size(), parts, network.latency_us, network.bandwidth_GBps);
  std::printf("%6s %10s %10s %10s %10s %10s %10s %12s  %s\n", "ranks", "s", "efficiency", "own s", "parts s",
              "idle s", "network s", "bytes a rank", "limit");
  Json rows = Json::array();
  for (int ranks = 1; ranks <= 256; ranks *= 2) {
    const ReplayedRun run = replayed(log, ranks, network);
    const double efficiency = one.seconds() / run.seconds() / ranks;
    std::printf("%6d %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %12.4g  %s\n", ranks, run.seconds(),
                efficiency, run.own_s, run.parts_s, run.idle_s, run.talk_s, run.bytes, run.limit().c_str());
    rows.push_back({{"case", c.name},
                    {"ranks", ranks},
                    {"replayed_s", run.seconds()},
                    {"efficiency", efficiency},
                    {"own_s", run.own_s},
                    {"parts_s", run.parts_s},
                    {"idle_s", run.idle_s},
                    {"network_s", run.talk_s},
                    {"bytes_of_a_rank", run.bytes},
                    {"limit", run.limit()}});
  }
  std::fflush(stdout);
  return rows;
}

/// Walls of the whole command on 1 rank and on more, in turn: what else the machine does slows both alike.
Json measured(const BenchmarkOptions& options, const Case& c, int timeout_s, bool& good) {
  std::vector<double> walls[2];
  std::set<std::string> digests;
  for (int i = 0; i < options.number("--repeat", 0); ++i) {
    for (const int k : {0, 1}) {
      const CaseResult r = solve_case(options.rondo, k == 0 ? 1 : options.ranks, c.arguments, timeout_s);
      good = good && r.failure().empty();
      if (!r.failure().empty()) return {{"case", c.name}, {"failed", r.failure()}};
      walls[k].push_back(r.wall_s);
      digests.insert(r.report["schedule_digest"].get<std::string>());
    }
  }
  good = good && digests.size() <= 1;
  if (walls[0].empty()) return nullptr;
  const double one = median(walls[0]);
  const double more = median(walls[1]);
  std::printf("%s: median of %zu: %.2f s on 1 rank, %.2f s on %d: %.2f times; %zu schedule(s)\n",
              c.name.c_str(), walls[0].size(), one, more, options.ranks, one / more, digests.size());
  return {{"case", c.name},
          {"ranks", options.ranks},
          {"wall_s_on_1", one},
          {"wall_s", more},
          {"times_as_fast", one / more},
          {"runs", walls[0].size()},
          {"same_schedule", digests.size() == 1}};
}

/// A log that another run has written, of the case that --only names, if one is named.
int replay_file(const BenchmarkOptions& options, const Network& network) {
  const std::string& path = options.own.at("--log");
  const std::string& name = options.own.at("--only");
  std::ifstream stream(path);
  const Json log = Json::parse(stream, nullptr, false);
  if (log.is_discarded() || !log.contains("steps")) {
    std::fprintf(stderr, "scaling: %s is no log of rondo solve --work-log\n", path.c_str());
    return 65;
  }
  const Json rows = replay_rows({name.empty() ? path : name, {}}, log, network);
  if (!options.json.empty()) write_results(options, rows);
  return 0;
}

int run(const BenchmarkOptions& options) {
  const int timeout_s = options.number("--timeout", 1);
  const Network network{static_cast<double>(options.number("--latency-us", 0)),
                        static_cast<double>(options.number("--bandwidth-gbps", 1)),
                        options.number("--ranks-per-node", 1)};
  if (!options.own.at("--log").empty()) return replay_file(options, network);
  Json rows = Json::array();
  Json walls = Json::array();
  bool good = true;
  for (const Case& c : cases()) {
    if (c.name.find(options.own.at("--only")) == std::string::npos) continue;
    const Json log = recorded(options, c, timeout_s);
    good = good && !log.is_null();
    if (log.is_null()) {
      rows.push_back({{"case", c.name}, {"failed", "the recorded run"}});
      continue;
    }
    for (Json& row : replay_rows(c, log, network)) rows.push_back(std::move(row));
    if (Json wall = measured(options, c, timeout_s, good); !wall.is_null()) walls.push_back(std::move(wall));
    save_results(options, rows, {{"measured", walls}});
  }
  write_results(
      options, rows,
      {{"latency_us", network.latency_us}, {"bandwidth_GBps", network.bandwidth_GBps}, {"measured", walls}});
  return good ? 0 : 1;
}

}  // namespace

int benchmark(int argc, char** argv) {
  return run(parse_options(argc, argv, "scaling",
                           {{"--only", ""},
                            {"--log", ""},
                            {"--repeat", "5"},
                            {"--timeout", "3600"},
                            {"--latency-us", "5"},
                            {"--bandwidth-gbps", "10"},
                            {"--ranks-per-node", "64"}}));
}

}  // namespace rondo::benchmarks::scaling
