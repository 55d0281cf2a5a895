#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "refuse.hpp"
#include "rondo/core/collective.hpp"

/// Who takes part in a collective, and with how much.
namespace rondo {
namespace {

void check_members(const std::vector<GpuId>& group, std::size_t num_gpus) {
  for (const GpuId gpu : group) {
    if (!gpu.valid() || gpu.index() >= num_gpus) {
      refuse(
          fmt::format("group names GPU {}, which does not exist; GPUs are 0 to {}", gpu.value, num_gpus - 1));
    }
  }
  for (std::size_t i = 1; i < group.size(); ++i) {
    if (group[i] == group[i - 1])
      refuse(fmt::format("group names GPU {} twice; name it once", group[i].value));
    if (group[i] < group[i - 1]) {
      refuse(fmt::format("group names GPU {} after GPU {}; name its members in ascending order",
                         group[i].value, group[i - 1].value));
    }
  }
  if (group.size() == 1)
    refuse(fmt::format("group is GPU {} alone; a collective needs at least two", group.front().value));
}

void check_counts(const CollectiveShape& shape, Collective collective, std::size_t num_members) {
  const std::size_t expected = collective->num_counts(num_members);
  if (expected == 0) {
    refuse(fmt::format("counts say how large each part is, and {}; leave them out",
                       collective->source ? fmt::format("{} has one buffer", to_string(collective))
                                          : "a demand file says so itself"));
  }
  if (shape.counts.size() != expected) {
    refuse(fmt::format("counts are {}; {} among {} GPUs takes {}, one a {}", shape.counts.size(),
                       to_string(collective), num_members, expected,
                       expected == num_members ? "GPU" : "pair of GPUs, by rows"));
  }
  for (std::size_t i = 0; i < shape.counts.size(); ++i) {
    if (shape.counts[i] >= 0 && std::isfinite(shape.counts[i])) continue;
    refuse(fmt::format("count {} is {}; bytes are 0 or more and finite", i, shape.counts[i]));
  }
}

}  // namespace

std::vector<GpuId> members_of(const CollectiveShape& shape, std::size_t num_gpus) {
  if (!shape.group.empty()) return shape.group;
  std::vector<GpuId> all;
  for (std::size_t g = 0; g < num_gpus; ++g) all.emplace_back(g);
  return all;
}

std::string to_string(const std::vector<GpuId>& gpus) {
  std::string text;
  for (std::size_t i = 0; i < gpus.size();) {
    std::size_t end = i + 1;
    while (end < gpus.size() && gpus[end].value == gpus[end - 1].value + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", gpus[i].value);
    if (end - i > 1) text += fmt::format("-{}", gpus[end - 1].value);
    i = end;
  }
  return text;
}

std::string describe(const CollectiveShape& shape) {
  std::string text;
  if (!shape.group.empty()) text += " over GPUs " + to_string(shape.group);
  if (!shape.relays) text += " without relays";
  if (!shape.counts.empty()) text += " by counts";
  return text;
}

void check_shape(const CollectiveShape& shape, Collective collective, std::size_t num_gpus) {
  check_members(shape.group, num_gpus);
  if (!shape.counts.empty())
    check_counts(shape, collective, shape.group.empty() ? num_gpus : shape.group.size());
  if (!shape.relays && (shape.group.empty() || shape.group.size() == num_gpus))
    refuse("relay is none, but every GPU takes part, so that none could relay for others; leave it out");
}

double size_of_counts(Collective collective, const CollectiveShape& shape, std::size_t num_gpus) {
  const std::vector<double>& counts = shape.counts;
  const std::size_t n = shape.group.empty() ? num_gpus : shape.group.size();
  if (collective->num_counts(n) == n) return std::accumulate(counts.begin(), counts.end(), 0.0);
  double most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double row = 0;
    double column = 0;
    for (std::size_t j = 0; j < n; ++j) {
      row += counts[i * n + j];
      column += counts[j * n + i];
    }
    most = std::max({most, row, column});
  }
  return most;
}

}  // namespace rondo
