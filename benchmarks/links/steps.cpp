#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "links.hpp"

namespace rondo::benchmarks::links {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr const char* kSteps = "steps";

/// Half of what AllGather of 1 GB takes on ndv2-2.
constexpr double kMiddleUs = 20'000;

struct StepsCase {
  const char* what;
  int src, dst;     ///< of the link
  double factor;    ///< of its bandwidth, from the middle on
  double until_us;  ///< 0: it stays so
};

/// ndv2-2 some link of which changes, as a file.
fs::path changing_fabric(const StepsCase& c) {
  std::ifstream file(fs::path(RONDO_SOURCE_DIR) / "jobs" / "topologies" / "ndv2-2.json");
  Json topology = Json::parse(file);
  topology["version"] = 2;
  for (Json& link : topology["links"]) {
    if (link["src"] != c.src || link["dst"] != c.dst) continue;
    const double GBps = link["bandwidth_GBps"].get<double>();
    Json steps{{{"from_us", 0}, {"GBps", GBps}}, {{"from_us", kMiddleUs}, {"GBps", c.factor * GBps}}};
    if (c.until_us > 0) steps.push_back({{"from_us", c.until_us}, {"GBps", GBps}});
    link["bandwidth_steps"] = steps;
  }
  const fs::path path = fs::temp_directory_path() / "rondo-benchmark-steps.json";
  std::ofstream(path) << topology.dump();
  return path;
}

}  // namespace

void steps(TableCases& cases) {
  const fs::path folder = fs::temp_directory_path();
  const fs::path kept = folder / "rondo-benchmark-kept.h5";
  const std::string problem = " --collective allgather --size 1GB";
  bool is_kept = false;
  for (const StepsCase& c : {StepsCase{"NVLink 9 -> 13 at half its bandwidth", 9, 13, 0.5, 0},
                             {"NVLink 9 -> 13 down for 10 ms", 9, 13, 0, kMiddleUs + 10'000},
                             {"NVLink 9 -> 13 down, and stays down", 9, 13, 0, 0},
                             {"InfiniBand 0 -> 9 at half its bandwidth", 0, 9, 0.5, 0},
                             {"InfiniBand 0 -> 9 down for 10 ms", 0, 9, 0, kMiddleUs + 10'000}}) {
    if (!cases.wants(kSteps, c.what)) continue;
    if (!is_kept)
      is_kept = cases.solve(kSteps, "ndv2-2", words("--topology ndv2-2" + problem), kept).has_value();
    const fs::path fabric = changing_fabric(c);
    const auto aware = cases.solve(kSteps, c.what, words("--topology " + fabric.string() + problem));
    const fs::path replayed = folder / "rondo-benchmark-replayed.json";
    const int code = run_command({cases.options().rondo.string(), "replay", kept.string(), "--topology",
                                  fabric.string(), "--output", replayed.string()},
                                 nullptr);
    if (code != 0 && code != 69) cases.fail(kSteps, c.what, fmt::format("replay: exit code {}", code));
    Json unaware;  // null where the order does not work there
    if (code == 0) {
      std::ifstream file(replayed);
      unaware = Json::parse(file)["finish_us"];
    }
    if (aware)
      cases.add(kSteps, c.what,
                {{"wall_s", aware->wall_s}, {"report", aware->report}, {"unaware_finish_us", unaware}});
    fs::remove(replayed);
    fs::remove(fabric);
  }
  fs::remove(kept);
}

}  // namespace rondo::benchmarks::links
