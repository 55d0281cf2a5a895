#include <fmt/format.h>

#include <map>

#include "known_algorithm.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

/// Between the chassis along GPUs of one place in each, and within every chassis: what uses every network
/// card once.
namespace rondo {
namespace {

struct Chassis {
  std::vector<std::vector<int>> members;  ///< per chassis
  std::vector<std::pair<int, int>> of;    ///< per member its chassis and its place there

  int count() const { return static_cast<int>(members.size()); }
  /// Of a smaller chassis the places count around.
  int at(int chassis, int place) const {
    const std::vector<int>& here = members[index(chassis)];
    return here[index(place) % here.size()];
  }
};

Chassis chassis_of(const Members& members) {
  std::map<int, int> number;
  Chassis chassis;
  for (int m = 0; m < members.count(); ++m) {
    const NodeId node = members.topology.node_of(members.gpus[index(m)]);
    const auto& name = members.topology.node(node).chassis;
    if (!name) {
      throw Error(ExitCode::unavailable,
                  fmt::format("engine hierarchical goes by chassis, and node {} of '{}' has none; give "
                              "\"chassis\" in the topology, or use --engine direct",
                              node.value, members.topology.name()));
    }
    const int c = number.try_emplace(*name, chassis.count()).first->second;
    if (c == chassis.count()) chassis.members.emplace_back();
    chassis.of.emplace_back(c, static_cast<int>(chassis.members[index(c)].size()));
    chassis.members[index(c)].push_back(m);
  }
  if (chassis.count() > 1) return chassis;
  throw Error(ExitCode::unavailable,
              fmt::format("engine hierarchical needs several chassis, and '{}' has one; use --engine direct",
                          members.topology.name()));
}

/// From the root to its like in the other chassis, then within each chassis.
StepMessages spread(const Chassis& chassis, int root, bool binomially) {
  const auto [home, place] = chassis.of[index(root)];
  StepMessages messages;
  const auto add = [&](int root_place, int count, int first_step, const auto& member) {
    if (binomially) {
      for (const StepMessage& m : binomial(root_place, count))
        messages.push_back({member(m.from), member(m.to), first_step + m.step});
    } else {
      for (int s = 1; s < count; ++s)
        messages.push_back({member(root_place), member((root_place + s) % count), first_step + s});
    }
  };
  add(home, chassis.count(), 0, [&, place = place](int c) { return chassis.at(c, place); });
  for (int i = 0; i < chassis.count(); ++i) {
    const int c = (home + i) % chassis.count();
    const std::vector<int>& here = chassis.members[index(c)];
    const auto count = static_cast<int>(here.size());
    add(place % count, count, chassis.count(), [&](int p) { return here[index(p)]; });
  }
  return messages;
}

/// Within the chassis to the GPU of the destination's place, then to the destination (NCCL's PXN).
StepMessages route(const Chassis& chassis, int from, int to) {
  const auto [home, place] = chassis.of[index(from)];
  const auto [away, other] = chassis.of[index(to)];
  const int via = home == away ? from : chassis.at(home, other);
  StepMessages messages;
  const int turn = (away - home + chassis.count()) % chassis.count();
  if (via != from) messages.push_back({from, via, turn});
  messages.push_back({via, to, turn});
  return messages;
}

}  // namespace

EngineInfo hierarchical_engine() {
  const MakeAlgorithm by_chassis = [](const Members& members) -> KnownAlgorithm {
    const Chassis chassis = chassis_of(members);
    const bool binomially = members.has_one_root;
    return {.spread = [chassis, binomially](int, int root) { return spread(chassis, root, binomially); },
            .route = [chassis](int from, int to) { return route(chassis, from, to); }};
  };
  return quick_engine(
      known_engine("hierarchical",
                   "between GPUs of the same place in their chassis, and within every chassis; AllReduce in "
                   "four such steps",
                   by_chassis));
}

}  // namespace rondo
