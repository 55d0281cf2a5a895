#include "switch_plan.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

using Groups = std::vector<std::vector<GpuId>>;

/// Rates that differ by less are one.
constexpr double kSameRate = 1e-9;
/// Behind one switch, from each to the next ones: enough to join all of them.
constexpr std::size_t kFewPeers = 2;

class Planner {
 public:
  Planner(const Topology& topology, const AddingSwitches& switches, const std::vector<GpuId>& members)
      : topology_(topology), switches_(switches), members_(members) {}

  std::optional<SwitchPlan> at_once() const {
    SwitchPlan plan{{members_}, {InsideGroup{}}, {}};
    for (int joint = 0; joint < switches_.num_joints(); ++joint) {
      if (has_all(joint, members_)) plan.between.push_back({joint, plan.groups, plan.groups});
    }
    return checked(std::move(plan));
  }

  std::optional<SwitchPlan> by_groups() const {
    SwitchPlan plan{groups()};
    if (plan.groups.size() < 2 || plan.groups.size() == members_.size()) return std::nullopt;
    for (int joint = 0; joint < switches_.num_joints(); ++joint) {
      BetweenGroups between{joint};
      for (const std::vector<GpuId>& group : plan.groups) {
        std::ranges::copy_if(group, std::back_inserter(between.senders.emplace_back()),
                             [&](GpuId g) { return switches_.may_send(joint, g); });
        std::ranges::copy_if(group, std::back_inserter(between.takers.emplace_back()),
                             [&](GpuId g) { return switches_.may_take(joint, g); });
      }
      const auto is_empty = [](const std::vector<GpuId>& gpus) { return gpus.empty(); };
      if (std::ranges::none_of(between.senders, is_empty) && std::ranges::none_of(between.takers, is_empty))
        plan.between.push_back(std::move(between));
    }
    for (const std::vector<GpuId>& group : plan.groups) {
      std::optional<InsideGroup> inside = inside_of(group, plan.between);
      if (!inside) return std::nullopt;
      // What does both does it at once.
      if (inside->joint)
        std::erase_if(plan.between, [&](const BetweenGroups& b) { return b.joint == *inside->joint; });
      plan.inside.push_back(*std::move(inside));
    }
    return checked(std::move(plan));
  }

 private:
  bool has_all(int joint, const std::vector<GpuId>& gpus) const {
    return std::ranges::all_of(
        gpus, [&](GpuId g) { return switches_.may_send(joint, g) && switches_.may_take(joint, g); });
  }

  /// Without joints that do not lead from all to all.
  std::optional<SwitchPlan> checked(SwitchPlan plan) const {
    std::erase_if(plan.between, [&](const BetweenGroups& between) {
      std::vector<GpuId> senders;
      std::vector<GpuId> takers;
      for (const auto& gpus : between.senders) senders.insert(senders.end(), gpus.begin(), gpus.end());
      for (const auto& gpus : between.takers) takers.insert(takers.end(), gpus.begin(), gpus.end());
      return !switches_.joined(between.joint, senders, takers).has_value();
    });
    return plan.between.empty() ? std::nullopt : std::optional(std::move(plan));
  }

  Groups groups() const {
    std::vector<int> group_of;
    for (const GpuId g : members_) {
      const auto& chassis = topology_.node(topology_.node_of(g)).chassis;
      if (!chassis) return by_number(joined_by_rates());
      group_of.push_back(*chassis);
    }
    return by_number(group_of);
  }

  Groups by_number(const std::vector<int>& group_of) const {
    std::map<int, std::vector<GpuId>> by_group;
    for (std::size_t m = 0; m < members_.size(); ++m) by_group[group_of[m]].push_back(members_[m]);
    Groups groups;
    for (auto& [number, gpus] : by_group) groups.push_back(std::move(gpus));
    return groups;
  }

  /// Per member: hops of falling rates join groups, up to the rate that would join all of them.
  std::vector<int> joined_by_rates() const {
    std::map<double, std::vector<std::pair<std::size_t, std::size_t>>, std::greater<>> pairs;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (const Hop& hop : hops_from(topology_, members_[m], 1, kFewPeers)) {
        const auto to = std::ranges::lower_bound(members_, hop.dst);
        if (to == members_.end() || *to != hop.dst) continue;
        const double rate = 1 / hop.us_per_byte;
        const auto known = pairs.lower_bound(rate * (1 + kSameRate));
        const bool is_known = known != pairs.end() && known->first >= rate * (1 - kSameRate);
        pairs[is_known ? known->first : rate].emplace_back(m, to - members_.begin());
      }
    }
    std::vector<int> group_of;
    for (std::size_t m = 0; m < members_.size(); ++m) group_of.push_back(static_cast<int>(m));
    for (const auto& [rate, joined] : pairs) {
      std::vector<int> with = group_of;
      for (const auto& [a, b] : joined) std::ranges::replace(with, int{with[a]}, int{with[b]});
      if (std::ranges::count(with, with.front()) == std::ssize(with)) break;
      group_of = std::move(with);
    }
    return group_of;
  }

  /// Of the joints that have all of a group that at which the fewest others are; else hops that leave what is
  /// between groups to those. Nothing where not all reach each other.
  std::optional<InsideGroup> inside_of(const std::vector<GpuId>& group,
                                       const std::vector<BetweenGroups>& between) const {
    InsideGroup inside;
    std::ptrdiff_t fewest = 0;
    for (int joint = 0; joint < switches_.num_joints(); ++joint) {
      if (!has_all(joint, group) || !switches_.joined(joint, group, group)) continue;
      const auto all = std::ranges::count_if(members_, [&](GpuId g) { return has_all(joint, {g}); });
      if (inside.joint && all >= fewest) continue;
      inside.joint = joint;
      fewest = all;
    }
    if (inside.joint || group.size() == 1) return inside;
    inside.graph.num_nodes = static_cast<int>(topology_.num_gpus());
    const auto takes_others = [&](const HopLink& part) {
      return std::ranges::any_of(between, [&](const BetweenGroups& b) {
        return switches_.has(b.joint, topology_.link(part.link).dst);
      });
    };
    for (const GpuId g : group) {
      for (Hop& hop : hops_from(topology_, g)) {
        if (!std::ranges::binary_search(group, hop.dst) || std::ranges::any_of(hop.links, takes_others))
          continue;
        inside.graph.arcs.push_back({g.value, hop.dst.value});
        inside.hops.push_back(std::move(hop));
      }
    }
    const std::vector<double> length(inside.hops.size(), 1);
    for (const Digraph& graph : {inside.graph, reversed(inside.graph)}) {
      const ShortestPaths paths = shortest_paths(graph, length, group.front().value);
      if (std::ranges::any_of(group,
                              [&](GpuId g) { return g != group.front() && paths.last_arc[g.index()] < 0; }))
        return std::nullopt;
    }
    return inside;
  }

  const Topology& topology_;
  const AddingSwitches& switches_;
  const std::vector<GpuId>& members_;
};

}  // namespace

std::vector<SwitchPlan> switch_plans(const Topology& topology, const AddingSwitches& switches,
                                     const std::vector<GpuId>& members) {
  const Planner planner(topology, switches, members);
  std::vector<SwitchPlan> plans;
  for (auto& plan : {planner.at_once(), planner.by_groups()}) {
    if (plan) plans.push_back(*plan);
  }
  return plans;
}

}  // namespace rondo
