#include "adding_switches.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr int kNoWay = std::numeric_limits<int>::max();
constexpr double kNoTime = std::numeric_limits<double>::infinity();
constexpr double kOutside = -1;
constexpr double kSameLatency = 1e-9;
constexpr double kSameLoad = 1e-9;
constexpr double kApart = 1e-4;  ///< us
constexpr int kMostCores = 8;    ///< tried for a transfer
constexpr std::size_t kMostCoresOfJoint = 256;

bool adds_and_copies(const Node& node) {
  return node.kind == NodeKind::switch_ && node.reduce && node.multicast && !node.stores();
}

}  // namespace

double load_with(const BusyLinks& loads_us, const Hop& hop, double bytes) {
  double share = 0;
  for (const HopLink& part : hop.links) share = std::max(share, part.share);
  double most_us = 0;
  for (const HopLink& part : hop.links) {
    if (part.share < share * (1 - kWholeLink)) continue;
    most_us = std::max(most_us, loads_us[part.link.index()] + part.occupied_us(bytes));
  }
  return most_us;
}

void add_load(BusyLinks& loads_us, const Hop& hop, double bytes) {
  for (const HopLink& part : hop.links) loads_us[part.link.index()] += part.occupied_us(bytes);
}

/// A tree to the core or from it, link by link.
struct AddingSwitches::Way {
  std::vector<double> latency_us;  ///< per node, between it and the core; kOutside: not in the tree
  std::vector<LinkId> links = {};
};

AddingSwitches::AddingSwitches(const Topology& topology) : topology_(topology) {
  std::vector<char> is_known(topology.num_nodes(), 0);
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    if (is_known[n] != 0 || !adds_and_copies(topology.node(NodeId(n)))) continue;
    Joint joint{std::vector<char>(topology.num_nodes(), 0), {}};
    std::vector<NodeId> switches{NodeId(n)};
    is_known[n] = joint.has[n] = 1;
    for (std::size_t i = 0; i < switches.size(); ++i) {
      const auto meet = [&](NodeId next) {
        if (is_known[next.index()] != 0 || !adds_and_copies(topology.node(next))) return;
        is_known[next.index()] = joint.has[next.index()] = 1;
        switches.push_back(next);
      };
      for (const LinkId l : topology.out_links(switches[i])) meet(topology.link(l).dst);
      for (const LinkId l : topology.in_links(switches[i])) meet(topology.link(l).src);
    }
    const std::size_t step = (switches.size() - 1) / kMostCoresOfJoint + 1;
    for (std::size_t i = 0; i < switches.size(); i += step)
      joint.cores.push_back({levels(joint, switches[i], true), levels(joint, switches[i], false)});
    joints_.push_back(std::move(joint));
  }
}

double AddingSwitches::busy_us(int joint, GpuId g, bool sends, const BusyLinks& loads_us) const {
  const NodeId n = topology_.node_of(g);
  double least_us = kNoTime;
  for (const LinkId l : sends ? topology_.out_links(n) : topology_.in_links(n)) {
    const NodeId next = sends ? topology_.link(l).dst : topology_.link(l).src;
    if (has(joint, next)) least_us = std::min(least_us, loads_us[l.index()]);
  }
  return least_us;
}

bool AddingSwitches::may_send(int joint, GpuId g) const {
  return std::ranges::any_of(topology_.out_links(topology_.node_of(g)),
                             [&](LinkId l) { return has(joint, topology_.link(l).dst); });
}

bool AddingSwitches::may_take(int joint, GpuId g) const {
  return std::ranges::any_of(topology_.in_links(topology_.node_of(g)),
                             [&](LinkId l) { return has(joint, topology_.link(l).src); });
}

std::optional<AddingSwitches::Joined> AddingSwitches::joined(int joint, std::vector<GpuId> sources,
                                                             std::vector<GpuId> destinations) const {
  Joined joined{joint, std::move(sources), std::move(destinations)};
  const std::vector<Core>& cores = joints_[index(joint)].cores;
  const BusyLinks none(topology_.num_links(), 0);
  std::vector<double> fixed_us;
  for (const Core& core : cores) {
    const std::optional<Hop> hop = over(core, joined, none);
    fixed_us.push_back(hop ? hop->fixed_us : kNoTime);
  }
  const double least_us = std::ranges::min(fixed_us);
  if (least_us == kNoTime) return std::nullopt;
  for (std::size_t c = 0; c < cores.size(); ++c) {
    if (fixed_us[c] <= least_us * (1 + kSameLatency)) joined.cores.push_back(static_cast<int>(c));
  }
  return joined;
}

Hop AddingSwitches::transfer(Joined& joined, double bytes, const BusyLinks& loads_us) const {
  std::optional<Hop> best;
  double least_us = kNoTime;
  const auto core = [&](int turn) -> const Core& {
    return joints_[index(joined.joint)].cores[index(joined.cores[index(turn)])];
  };
  const int num_cores = static_cast<int>(joined.cores.size());
  const int first = joined.first;
  for (int i = 0; i < std::min(kMostCores, num_cores); ++i) {
    const int turn = (first + i) % num_cores;
    std::optional<Hop> hop = over(core(turn), joined, loads_us);
    const double busy_us = hop ? load_with(loads_us, *hop, bytes) : kNoTime;
    if (busy_us >= least_us * (1 - kSameLoad)) continue;
    best = std::move(hop);
    least_us = busy_us;
    joined.first = turn;
  }
  // Of links side by side those that are free may have no latency.
  if (!best) best = over(core(first), joined, BusyLinks(topology_.num_links(), 0));
  return *std::move(best);
}

/// Per node, how many links of the joint are between it and the core. GPUs end a way.
std::vector<int> AddingSwitches::levels(const Joint& joint, NodeId core, bool up) const {
  std::vector<int> level(topology_.num_nodes(), kNoWay);
  level[core.index()] = 0;
  std::vector<NodeId> reached{core};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (joint.has[reached[i].index()] == 0) continue;
    for (const LinkId l : up ? topology_.in_links(reached[i]) : topology_.out_links(reached[i])) {
      const NodeId next = up ? topology_.link(l).src : topology_.link(l).dst;
      const bool goes_on = joint.has[next.index()] != 0 || topology_.is_gpu(next);
      if (!goes_on || level[next.index()] != kNoWay) continue;
      level[next.index()] = level[reached[i].index()] + 1;
      reached.push_back(next);
    }
  }
  return level;
}

/// Of those that lead nearer to the core the one that is free first.
LinkId AddingSwitches::next_link(const std::vector<int>& levels, NodeId n, bool up,
                                 const BusyLinks& loads_us) const {
  LinkId best;
  for (const LinkId l : up ? topology_.out_links(n) : topology_.in_links(n)) {
    const NodeId next = up ? topology_.link(l).dst : topology_.link(l).src;
    if (topology_.is_gpu(next) || levels[next.index()] != levels[n.index()] - 1) continue;
    if (!best.valid() || loads_us[l.index()] < loads_us[best.index()]) best = l;
  }
  return best;
}

/// The latency between `n` and the core, as far as links of the tree were not there yet by new ones.
double AddingSwitches::extend(Way& way, const std::vector<int>& levels, NodeId n, bool up,
                              const BusyLinks& loads_us) const {
  if (levels[n.index()] == 0) return 0;
  double& latency_us = way.latency_us[n.index()];
  if (latency_us != kOutside) return latency_us;
  const LinkId link = next_link(levels, n, up, loads_us);
  const Link& figures = topology_.link(link);
  const double before_us = extend(way, levels, up ? figures.dst : figures.src, up, loads_us);
  way.links.push_back(link);
  return latency_us = before_us + figures.latency_us;
}

std::optional<Hop> AddingSwitches::over(const Core& core, const Joined& joined,
                                        const BusyLinks& loads_us) const {
  const auto is_missing = [&](const std::vector<int>& levels) {
    return [&](GpuId g) { return levels[topology_.node_of(g).index()] == kNoWay; };
  };
  if (std::ranges::any_of(joined.sources, is_missing(core.up)) ||
      std::ranges::any_of(joined.destinations, is_missing(core.down)))
    return std::nullopt;
  Way up{std::vector<double>(topology_.num_nodes(), kOutside)};
  Way down = up;
  double at_core_us = 0;
  double farthest_us = 0;
  for (const GpuId g : joined.sources)
    at_core_us = std::max(at_core_us, extend(up, core.up, topology_.node_of(g), true, loads_us));
  for (const GpuId g : joined.destinations)
    farthest_us = std::max(farthest_us, extend(down, core.down, topology_.node_of(g), false, loads_us));
  // What goes up through a switch and what comes down through it are told apart by their times.
  for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
    const bool meets = up.latency_us[n] != kOutside && down.latency_us[n] != kOutside;
    if (meets && !topology_.is_gpu(NodeId(n)) && up.latency_us[n] + down.latency_us[n] < kApart)
      return std::nullopt;
  }

  Hop hop{joined.sources.front(), joined.destinations.front(), {}};
  const auto add = [&](LinkId l, double offset_us) {
    const Link& link = topology_.link(l);
    hop.links.push_back({l, offset_us, 0, 0, transmission_us(1, link.bandwidth_GBps)});
  };
  for (const LinkId l : up.links) add(l, at_core_us - up.latency_us[topology_.link(l).src.index()]);
  for (const LinkId l : down.links)
    add(l, at_core_us + down.latency_us[topology_.link(l).dst.index()] - topology_.link(l).latency_us);
  double message_us = 0;
  for (const HopLink& part : hop.links) {
    hop.us_per_byte = std::max(hop.us_per_byte, part.us_per_byte);
    message_us = std::max(message_us, topology_.link(part.link).message_us);
  }
  for (HopLink& part : hop.links) {
    if (part.us_per_byte < hop.us_per_byte * (1 - kWholeLink))
      part.share = part.us_per_byte / hop.us_per_byte;
    part.us_per_byte = hop.us_per_byte;
    part.message_us = message_us;
  }
  hop.longest_us_per_byte = hop.us_per_byte;
  hop.fixed_us = at_core_us + farthest_us + message_us;
  return hop;
}

}  // namespace rondo
