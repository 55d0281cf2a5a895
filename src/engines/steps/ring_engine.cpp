#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "known_algorithm.hpp"
#include "rings.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

/// Rings, as NCCL has them: several at once, each with its share of the data.
namespace rondo {
namespace {

constexpr std::size_t kMostRings = 16;
constexpr int kPiecesOfSpreading = 6;  ///< goes evenly over one, two, three or six rings

struct Rings {
  std::vector<Ring> rings;
  std::vector<std::vector<int>> place;  ///< per ring and member

  int count() const { return static_cast<int>(rings.front().order.size()); }
  int member(int ring, int at) const { return rings[index(ring)].order[index(at % count())]; }
};

/// To the `s`-th after the root in step s.
StepMessages around(const Rings& rings, int ring, int root) {
  const int first = rings.place[index(ring)][index(root)];
  StepMessages messages;
  for (int s = 1; s < rings.count(); ++s)
    messages.push_back({rings.member(ring, first + s - 1), rings.member(ring, first + s), s});
  return messages;
}

/// Sums begin behind the root and come to it from before.
StepMessages sums_around(const Rings& rings, int ring, int root) {
  const int count = rings.count();
  const int first = rings.place[index(ring)][index(root)];
  StepMessages messages;
  for (int s = count - 1; s > 0; --s)
    messages.push_back({rings.member(ring, first + s), rings.member(ring, first + s + 1), s});
  return messages;
}

KnownAlgorithm along_rings(const Members& members) {
  const auto found = std::make_shared<Rings>();
  found->rings = find_rings(members.topology, members.hops, members.gpus, kMostRings);
  if (found->rings.empty()) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("engine ring found no ring through all {} GPUs of '{}' in which links and switches "
                    "join each to the next; use --engine tree or direct",
                    members.count(), members.topology.name()));
  }
  double total = 0;
  for (const Ring& ring : found->rings) total += ring.GBps;
  KnownAlgorithm algorithm{.shares = {}};
  for (const Ring& ring : found->rings) {
    algorithm.shares.push_back(ring.GBps / total);
    found->place.emplace_back(ring.order.size());
    for (std::size_t i = 0; i < ring.order.size(); ++i)
      found->place.back()[index(ring.order[i])] = static_cast<int>(i);
  }
  const std::shared_ptr<const Rings> rings = found;
  algorithm.spread = [rings](int ring, int root) { return around(*rings, ring, root); };
  algorithm.gather = [rings](int ring, int root) { return sums_around(*rings, ring, root); };
  algorithm.hop = [rings](int ring, int from, int) {
    return rings->rings[index(ring)].hops[index(rings->place[index(ring)][index(from)])];
  };
  return algorithm;
}

}  // namespace

EngineInfo ring_engine() {
  EngineInfo engine =
      known_engine("ring",
                   "rings of the greatest bandwidth through all GPUs, several at once; AllGather, Broadcast, "
                   "AllReduce",
                   along_rings);
  engine.pieces = [of_sums = engine.pieces](const Demand& demand) {
    return demand.kind() == DemandKind::all_reduction ? of_sums(demand) : kPiecesOfSpreading;
  };
  return quick_engine(std::move(engine), true);
}

}  // namespace rondo
