#include <fmt/format.h>

#include "links.hpp"

namespace rondo::benchmarks::links {
namespace {

constexpr const char* kFatTrees = "fat_trees";

std::string fat_tree(int leaves, int uplink_GBps) {
  return fmt::format("fat_tree:leaves={},gpus=8,spines=2,link_GBps=50,uplink_GBps={}", leaves, uplink_GBps);
}

void all_to_all(TableCases& cases, const std::string& fabric, int concurrency) {
  const std::string name = fmt::format("{} alltoall 1GB --concurrency {}", fabric, concurrency);
  cases.solve_row(
      kFatTrees, name,
      fmt::format("--topology {} --collective alltoall --size 1GB --concurrency {} --time-limit 60", fabric,
                  concurrency),
      {{"fabric", fabric}, {"concurrency", concurrency}});
}

}  // namespace

void fat_trees(TableCases& cases) {
  for (const int concurrency : {0, 8}) {
    for (const int uplink_GBps : {75, 100, 200, 400})
      all_to_all(cases, fat_tree(6, uplink_GBps), concurrency);
    // 128 and 256 GPUs.
    for (const int leaves : {16, 32}) all_to_all(cases, fat_tree(leaves, 100), concurrency);
    all_to_all(cases, "dragonfly:groups=9", concurrency);
  }
  const std::string fabric = fat_tree(6, 100);
  cases.solve_row(kFatTrees, fabric + " allgather 1GB",
                  fmt::format("--topology {} --collective allgather --size 1GB --time-limit 60", fabric),
                  {{"fabric", fabric}});
}

}  // namespace rondo::benchmarks::links
