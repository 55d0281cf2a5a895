#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>

#include "demands.hpp"
#include "rondo/core/random.hpp"

namespace rondo::benchmarks::demands {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct MixedFabric {
  const char* arguments;
  std::size_t gpus;
};
constexpr MixedFabric kMixedFabrics[] = {{"dgx1", 8},
                                         {"ndv2-2", 16},
                                         {"ndv2-4", 32},
                                         {"amd-2", 32},
                                         {"dgx2-2", 32},
                                         {"rails:boxes=4", 32},
                                         {"torus:dims=8x8", 64},
                                         {"dragonfly:groups=9", 72},
                                         {"fat_tree", 16},
                                         {"rails:boxes=8 --degrade 0.05:0.5", 64}};
constexpr std::uint64_t kMixesEach = 10;

Json datum(std::size_t id, double bytes, std::size_t source, std::vector<std::size_t> destinations) {
  std::ranges::sort(destinations);
  return {{"id", id}, {"bytes", bytes}, {"sources", {source}}, {"destinations", std::move(destinations)}};
}

/// 4 to 12 data of 1 to 63 MB, half of them pairs, the others for 2 to 8 GPUs; a quarter of them comes later,
/// within 200 us.
Json random_mix(std::size_t gpus, std::uint64_t seed) {
  Random random(seed);
  Json data = Json::array();
  const std::size_t count = 4 + random.below(9);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::size_t> others(gpus);
    std::iota(others.begin(), others.end(), std::size_t{0});
    random.shuffle(std::span(others));
    const std::size_t wanted = random.unit() < 0.5 ? 1 : 2 + random.below(std::min<std::size_t>(7, gpus - 2));
    const double bytes = std::round(std::pow(10, 6 + 1.8 * random.unit()));
    data.push_back(datum(i, bytes, others.front(),
                         {others.begin() + 1, others.begin() + 1 + static_cast<std::ptrdiff_t>(wanted)}));
    if (random.unit() < 0.25) data.back()["ready_us"] = std::round(2000 * random.unit()) / 10;
  }
  return data;
}

void solve_custom(TableCases& cases, const std::string& table, const std::string& name,
                  const std::string& fabric, const Json& data) {
  if (!cases.wants(table, name)) return;
  const fs::path file = fs::temp_directory_path() / fmt::format("rondo-benchmark-{}.json", table);
  std::ofstream(file) << Json{{"format", "rondo-demand"}, {"version", 1}, {"chunks", data}}.dump();
  cases.solve_row(table, name, fmt::format("--topology {} --demand {}", fabric, file.string()),
                  {{"fabric", fabric}, {"chunks", data}});
  fs::remove(file);
}

/// What the collective asks for, as data in the reverse order of GPUs.
Json data_of(const std::string& collective, double size_bytes, std::size_t gpus) {
  Json data = Json::array();
  const double part = size_bytes / static_cast<double>(gpus);
  std::vector<std::size_t> all(gpus);
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (std::size_t g = gpus; g-- > 0;) {
    std::vector<std::size_t> others = all;
    std::erase(others, g);
    if (collective == "allgather") data.push_back(datum(data.size(), part, g, others));
    if (collective == "broadcast" && g == 0) data.push_back(datum(data.size(), size_bytes, g, others));
    if (collective == "scatter" && g > 0) data.push_back(datum(data.size(), part, 0, {g}));
    if (collective == "gather" && g > 0) data.push_back(datum(data.size(), part, g, {0}));
    if (collective != "alltoall") continue;
    for (const std::size_t to : others) data.push_back(datum(data.size(), part, g, {to}));
  }
  return data;
}

}  // namespace

void mixed(TableCases& cases) {
  solve_custom(cases, "mixed", "two pairs and a multicast", "torus:dims=4x4",
               {datum(0, 50e6, 0, {9}), datum(1, 50e6, 3, {12}), datum(2, 25e6, 2, {7, 6, 0, 11})});
  Json late = {datum(0, 1e6, 0, {1, 2, 3}), datum(1, 5e6, 3, {0}), datum(2, 250e3, 2, {7, 6, 0})};
  late[2]["ready_us"] = 30;
  solve_custom(cases, "mixed", "a multicast, a pair and a late multicast", "dgx1", late);
  for (const MixedFabric& fabric : kMixedFabrics) {
    for (std::uint64_t seed = 0; seed < kMixesEach; ++seed)
      solve_custom(cases, "mixed", fmt::format("{} {}", fabric.arguments, seed), fabric.arguments,
                   random_mix(fabric.gpus, seed));
  }
}

void named(TableCases& cases) {
  constexpr double kSize = 64e6;
  for (const char* collective : {"allgather", "alltoall", "scatter", "gather", "broadcast"}) {
    for (const MixedFabric& fabric : {MixedFabric{"dgx1", 8}, {"ndv2-2", 16}, {"torus:dims=4x4", 16}}) {
      const std::string what = fmt::format("{} {}", fabric.arguments, collective);
      cases.solve_row("named", what + " by name",
                      fmt::format("--topology {} --collective {} --size 64MB", fabric.arguments, collective));
      solve_custom(cases, "named", what + " as a custom demand", fabric.arguments,
                   data_of(collective, kSize, fabric.gpus));
    }
  }
}

}  // namespace rondo::benchmarks::demands
