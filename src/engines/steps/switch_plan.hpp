#pragma once

#include <optional>
#include <vector>

#include "adding_switches.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/graph/digraph.hpp"

/// Where switches add up what all GPUs want.
namespace rondo {

/// How the GPUs of a group reach each other: through a joint of switches, or over hops between them.
struct InsideGroup {
  std::optional<int> joint = std::nullopt;
  std::vector<Hop> hops = {};  ///< without a joint
  Digraph graph = {};          ///< of GPUs, an arc a hop
};

/// GPUs that can exchange what their groups have through a joint.
struct BetweenGroups {
  int joint = 0;
  std::vector<std::vector<GpuId>> senders = {};  ///< per group
  std::vector<std::vector<GpuId>> takers = {};
};

struct SwitchPlan {
  std::vector<std::vector<GpuId>> groups = {};  ///< one: its GPUs all send and take
  std::vector<InsideGroup> inside = {};         ///< per group
  std::vector<BetweenGroups> between = {};      ///< any of them will do
};

/// For all members at once, and by groups: chassis or, where not all members have one, those that the fastest
/// hops join. Empty where no switches add for all.
std::vector<SwitchPlan> switch_plans(const Topology& topology, const AddingSwitches& switches,
                                     const std::vector<GpuId>& members);

}  // namespace rondo
