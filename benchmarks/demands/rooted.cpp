#include <fmt/format.h>

#include "demands.hpp"

namespace rondo::benchmarks::demands {
namespace {

/// With a space behind it each, so that --only "dgx1 " means one.
constexpr const char* kFabrics[] = {"dgx1",           "ndv2-2",
                                    "ndv2-4",         "amd-2",
                                    "dgx2-2",         "rails:boxes=4",
                                    "torus:dims=8x8", "dragonfly:groups=9",
                                    "fat_tree",       "rails:boxes=8 --degrade 0.05:0.5"};
constexpr const char* kSizes[] = {"1GB", "64MB", "1MB"};
/// Up to 4096 GPUs, 1 GB.
constexpr const char* kLargeFabrics[] = {"rails:boxes=32", "dragonfly:groups=33,routers=4,hosts=8",
                                         "torus:dims=16x16x16", "rails:boxes=512",
                                         "star:chassis=512,intra=ndv2"};

void solve(TableCases& cases, const std::string& collective, const std::string& fabric,
           const std::string& size) {
  cases.solve_row(collective, fabric + " " + size,
                  fmt::format("--topology {} --collective {} --size {}", fabric, collective, size),
                  {{"fabric", fabric}, {"size", size}});
}

}  // namespace

void rooted(TableCases& cases) {
  for (const char* collective : {"broadcast", "reduce"}) {
    for (const char* fabric : kFabrics) {
      for (const char* size : kSizes) solve(cases, collective, fabric, size);
    }
    for (const char* fabric : kLargeFabrics) solve(cases, collective, fabric, "1GB");
  }
}

}  // namespace rondo::benchmarks::demands
