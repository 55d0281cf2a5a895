// AllGather from 16 to 4096 GPUs: TACOS' problems in its link model and in ours, large symmetric topologies,
// damaged ones; finish, bound, gap, seconds, memory. At the end the growth of the run time with the sends.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::allgather {
namespace {

struct Case {
  std::string group;
  std::string fabric;  ///< as --topology takes it
  int gpus = 0;
  std::string size = "1GB";
  std::vector<std::string> options = {};
  double published_us = 0;  ///< finish that others report; 0: none
};

constexpr double kMiB = 1048576;

/// GB/s of a link that takes `us` for 1 MiB.
double mebibyte_in(double us) {
  return kMiB / us / 1000;
}

/// TACOS (MICRO 2024): 1 MiB a GPU in one chunk, links of 50 or 75 GiB/s with 0.5 us that are taken for
/// latency and transmission together; and the same topologies where latency does not keep a link busy.
void add_tacos(std::vector<Case>& cases) {
  const double slow = mebibyte_in(20.03125);
  const double fast = mebibyte_in(1e6 / 76800 + 0.5);
  const double gib = 1.073741824;
  const auto add = [&](const std::string& shape, int gpus, const std::string& list, double latency_us,
                       double published_us) {
    cases.push_back({latency_us == 0 ? "tacos" : "tacos-own-model",
                     fmt::format("{},bandwidth_GBps={},latency_us={}", shape, list, latency_us),
                     gpus,
                     fmt::format("{}MiB", gpus),
                     {"--chunks", "1", "--gap", "0"},
                     published_us});
  };
  const std::string one = fmt::format("{:.12g}", slow);
  const std::string two = fmt::format("{:.12g},{:.12g}", slow, fast);
  add("mesh:dims=16x16", 256, one, 0, 0);
  add("torus:dims=16x16", 256, one, 0, 1302.03);
  add("torus:dims=32x32", 1024, one, 0, 5168.06);
  add("mesh:dims=32x32", 1024, one, 0, 0);
  add("torus:dims=8x8x8", 512, one, 0, 0);
  add("hypercube:dimensions=10", 1024, one, 0, 0);
  add("mesh:dims=8x8", 64, two, 0, 0);
  add("torus:dims=16x16", 256, fmt::format("{}", 50 * gib), 0.5, 0);
  add("torus:dims=32x32", 1024, fmt::format("{}", 50 * gib), 0.5, 0);
  add("mesh:dims=8x8", 64, fmt::format("{},{}", 50 * gib, 75 * gib), 0.5, 0);
}

/// The topologies whose growth is measured, from 256 to 4096 GPUs.
void add_large(std::vector<Case>& cases) {
  const auto add = [&](const char* group, std::string fabric, int gpus, const char* gap) {
    cases.push_back({group, std::move(fabric), gpus, "1GB", {"--gap", gap}, 0});
  };
  for (const int side : {16, 32, 64}) {
    const int gpus = side * side;
    const char* gap = gpus > 1024 ? "2%" : "1%";
    add("growth-torus", fmt::format("torus:dims={}x{}", side, side), gpus, gap);
    add("growth-star", fmt::format("star:chassis={},intra=ndv2", gpus / 8), gpus, gap);
    add("growth-rails", fmt::format("rails:boxes={}", gpus / 8), gpus, gap);
  }
  add("large", "dragonfly:groups=9", 72, "1%");
  add("large", "dragonfly:groups=33,routers=4,hosts=8", 1056, "1%");
  add("large", "fat_tree:leaves=16,gpus=16,spines=16", 256, "1%");
  add("large", "fat_tree:leaves=32,gpus=32,spines=16", 1024, "1%");
  add("large", "fat_tree:leaves=64,gpus=64,spines=32", 4096, "1%");
  add("large", "torus:dims=8x8x16", 1024, "1%");
  add("large", "rails:boxes=8", 64, "2%");
  add("large", "rails:boxes=2,rails=2", 16, "2%");
  add("large", "rails:boxes=4,rails=2", 32, "2%");
  add("large", "amd-2", 32, "2%");
}

/// Slower links, and a network card that is gone, where GPUs have more than one way out.
void add_damaged(std::vector<Case>& cases) {
  for (const int gpus : {64, 128, 256}) {
    const char* gap = gpus == 64 ? "2%" : gpus == 128 ? "4%" : "5%";
    const std::string torus = gpus == 64 ? "8x8" : gpus == 128 ? "8x16" : "16x16";
    const std::string star = fmt::format("star:chassis={},intra=ndv2,uplinks=2", gpus / 8);
    const std::string rails = fmt::format("rails:boxes={}", gpus / 8);
    const auto add = [&](const std::string& fabric, const char* option, const char* value) {
      cases.push_back(
          {"damaged", fabric, gpus, "1GB", {"--gap", gap, "--time-limit", "60", option, value}, 0});
    };
    for (const std::string& fabric :
         {"torus:dims=" + torus, rails, star, fmt::format("fat_tree:leaves={},gpus=8,spines=8", gpus / 8)})
      add(fabric, "--degrade", "0.05:0.5..0.9");
    add(rails, "--without", "c0g3:rail3");
    add(star, "--without", "c0g1:sw");
  }
  cases.push_back({"damaged",
                   "dragonfly:groups=9",
                   72,
                   "1GB",
                   {"--gap", "2%", "--time-limit", "60", "--degrade", "0.05:0.5..0.9"},
                   0});
}

/// Exponent of a power law through (sends, seconds), by least squares over the logarithms.
double exponent(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [sends, seconds] : points) {
    x += std::log(sends);
    y += std::log(seconds);
    xx += std::log(sends) * std::log(sends);
    xy += std::log(sends) * std::log(seconds);
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

int run(const BenchmarkOptions& options) {
  std::vector<Case> cases;
  add_tacos(cases);
  add_large(cases);
  add_damaged(cases);
  std::printf("%-15s %5s %-58s %13s %13s %8s %6s %9s %7s %8s  %s\n", "group", "GPUs", "fabric", "finish us",
              "bound us", "gap %", "chunks", "sends", "wall s", "rss MB", "engine");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::map<std::string, std::vector<std::pair<double, double>>> growth;
  bool all_valid = true;
  for (const Case& c : cases) {
    std::string what = c.fabric;
    for (const std::string& option : c.options) what += " " + option;
    const std::string& only = options.own.at("--only");
    if (c.gpus > options.number("--gpus", 1) || (c.group + " " + what).find(only) == std::string::npos)
      continue;
    std::vector<std::string> arguments{"--topology", c.fabric, "--collective", "allgather", "--size", c.size};
    arguments.insert(arguments.end(), c.options.begin(), c.options.end());
    const CaseResult r = solve_case(options.rondo, options.ranks, arguments, options.number("--timeout", 0));
    if (!r.failure().empty()) {
      std::printf("%-15s %5d %-58s %s\n", c.group.c_str(), c.gpus, what.c_str(), r.failure().c_str());
      all_valid = false;
      continue;
    }
    const auto number = [&](const char* name) { return r.report[name].get<double>(); };
    std::printf("%-15s %5d %-58s %13.3f %13.3f %8.3f %6.0f %9.0f %7.2f %8.0f  %s\n", c.group.c_str(), c.gpus,
                what.c_str(), number("finish_us"), number("lower_bound_us"), 100 * number("gap"),
                number("chunks"), number("sends"), r.wall_s,
                r.report["peak_rss_bytes"]["sum"].get<double>() / 1e6,
                r.report["engine"].get<std::string>().c_str());
    std::fflush(stdout);
    rows.push_back({{"group", c.group},
                    {"gpus", c.gpus},
                    {"case", what},
                    {"published_us", c.published_us},
                    {"wall_s", r.wall_s},
                    {"report", r.report}});
    save_results(options, rows);
    if (c.group.starts_with("growth")) growth[c.group].emplace_back(number("sends"), r.wall_s);
  }
  nlohmann::ordered_json exponents;
  for (const auto& [group, points] : growth) {
    if (points.size() < 2) continue;
    exponents[group] = exponent(points);
    std::printf("%s: wall time grows as sends^%.2f\n", group.c_str(), exponent(points));
  }
  write_results(options, rows, {{"growth_exponents", exponents}});
  return all_valid ? 0 : 1;
}

}  // namespace

int benchmark(int argc, char** argv) {
  return run(
      parse_options(argc, argv, "allgather", {{"--only", ""}, {"--gpus", "4096"}, {"--timeout", "600"}}));
}

}  // namespace rondo::benchmarks::allgather
