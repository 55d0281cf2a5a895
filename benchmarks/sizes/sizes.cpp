// Six collectives on every fabric and a fat tree, at the 11 sizes of TE-CCL's Table 8: what is left between
// schedule and lower bound where latency and bandwidth mix.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"
#include "picture.hpp"

namespace rondo::benchmarks::sizes {
namespace {

struct Size {
  const char* name;
  double bytes;
};
constexpr Size kSizes[] = {{"1KB", 1e3},     {"4KB", 4e3},     {"16KB", 16e3}, {"64KB", 64e3},
                           {"256KB", 256e3}, {"1MB", 1e6},     {"4MB", 4e6},   {"16MB", 16e6},
                           {"64MB", 64e6},   {"256MB", 256e6}, {"1GB", 1e9}};
constexpr const char* kCollectives[] = {"allgather", "alltoall",  "reduce_scatter",
                                        "allreduce", "broadcast", "scatter"};
/// Those of which the mean is asked; of AllReduce bounds are weak, Broadcast and Scatter have one source.
constexpr const char* kTogether[] = {"allgather", "alltoall", "reduce_scatter"};

std::vector<std::string> fabrics() {
  std::vector<std::string> all = every_fabric(RONDO_SOURCE_DIR);
  all.emplace_back("fat_tree:leaves=6,gpus=8,spines=2,link_GBps=50,uplink_GBps=100");
  return all;
}

struct Row {
  std::string collective;
  double bytes;
  double gap;
};

GapOfSize summary(const std::vector<Row>& rows, double bytes) {
  GapOfSize all{.bytes = bytes};
  double logarithms = 0;
  for (const Row& row : rows) {
    logarithms += std::log1p(row.gap);
    all.worst = std::max(all.worst, row.gap);
  }
  all.mean = std::expm1(logarithms / static_cast<double>(rows.size()));
  return all;
}

template <class Keep>
std::vector<Row> those(const std::vector<Row>& rows, const Keep& keep) {
  std::vector<Row> kept;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(kept), keep);
  return kept;
}

std::string name_of(const std::string& fabric, const std::string& collective, const std::string& size) {
  return fabric + " " + collective + " " + size + " ";
}

/// Those of an earlier run that `only` leaves alone, so that the whole can be measured piece by piece.
nlohmann::ordered_json earlier_results(const std::filesystem::path& json, const std::string& only) {
  nlohmann::ordered_json kept = nlohmann::ordered_json::array();
  std::ifstream file(json);
  if (only.empty() || !file) return kept;
  const auto earlier = nlohmann::ordered_json::parse(file);
  std::copy_if(earlier.at("rows").begin(), earlier.at("rows").end(), std::back_inserter(kept),
               [&](const auto& row) {
                 return name_of(row.at("fabric"), row.at("collective"), row.at("size")).find(only) ==
                        std::string::npos;
               });
  return kept;
}

double bytes_of(const std::string& size) {
  const auto* const known =
      std::find_if(std::begin(kSizes), std::end(kSizes), [&](const Size& s) { return size == s.name; });
  return known == std::end(kSizes) ? 0 : known->bytes;
}

Row row_of(const nlohmann::ordered_json& result) {
  return {result.at("collective"), bytes_of(result.at("size")),
          std::max(0.0, result.at("report").at("gap").get<double>())};
}

/// Prints mean and worst of each collective and of three together, and draws them over the size.
void summarise(const std::vector<Row>& rows, const std::string& picture) {
  std::map<std::string, std::vector<GapOfSize>> drawn;
  for (const char* collective : kCollectives) {
    const auto of = those(rows, [&](const Row& row) { return row.collective == collective; });
    if (of.empty()) continue;
    const GapOfSize all = summary(of, 0);
    std::printf("%-14s geometric mean of 1 + gap %.4f, worst gap %.2f %%\n", collective, 1 + all.mean,
                100 * all.worst);
    for (const Size& size : kSizes) {
      const auto at = those(of, [&](const Row& row) { return row.bytes == size.bytes; });
      if (!at.empty()) drawn[collective].push_back(summary(at, size.bytes));
    }
  }
  const auto together = those(rows, [](const Row& row) {
    return std::find(std::begin(kTogether), std::end(kTogether), row.collective) != std::end(kTogether);
  });
  if (!together.empty()) {
    const GapOfSize all = summary(together, 0);
    std::printf("first three    geometric mean of 1 + gap %.4f, worst gap %.2f %%\n", 1 + all.mean,
                100 * all.worst);
  }
  if (!drawn.empty()) draw_gaps(picture, drawn);
}

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options = parse_options(argc, argv, "sizes", {{"--only", ""}, {"--timeout", "600"}});
  const int timeout_s = options.number("--timeout", 1);
  const std::string picture = std::filesystem::path(options.json).replace_extension("svg").string();
  std::printf("%-30s %-14s %-5s %12s %12s %-9s %8s %6s %7s  %s\n", "fabric", "", "size", "finish us",
              "bound us", "by", "gap %", "chunks", "wall s", "engine");
  nlohmann::ordered_json results = earlier_results(options.json, options.own.at("--only"));
  bool all_valid = true;
  for (const std::string& fabric : fabrics()) {
    for (const char* collective : kCollectives) {
      for (const Size& size : kSizes) {
        const std::string name = name_of(fabric, collective, size.name);
        if (name.find(options.own.at("--only")) == std::string::npos) continue;
        const CaseResult r =
            solve_case(options.rondo, options.ranks,
                       {"--topology", fabric, "--collective", collective, "--size", size.name}, timeout_s);
        if (const std::string failure = r.failure(); !failure.empty()) {
          std::printf("%-30s %-14s %-5s failed: %s\n", fabric.c_str(), collective, size.name,
                      failure.c_str());
          all_valid = false;
          continue;
        }
        const auto figure = [&](const char* key) { return r.report[key].get<double>(); };
        const auto word = [&](const char* key) { return r.report[key].get<std::string>(); };
        std::printf("%-30s %-14s %-5s %12.3f %12.3f %-9s %8.3f %6d %7.2f  %s\n", fabric.c_str(), collective,
                    size.name, figure("finish_us"), figure("lower_bound_us"),
                    word("lower_bound_kind").c_str(), 100 * figure("gap"), r.report["chunks"].get<int>(),
                    r.wall_s, word("engine").c_str());
        std::fflush(stdout);
        results.push_back({{"fabric", fabric},
                           {"collective", collective},
                           {"size", size.name},
                           {"wall_s", r.wall_s},
                           {"report", r.report}});
      }
    }
  }
  std::vector<Row> rows;
  std::transform(results.begin(), results.end(), std::back_inserter(rows), row_of);
  summarise(rows, picture);
  write_results(options, results);
  return all_valid ? 0 : 1;
}

}  // namespace rondo::benchmarks::sizes
