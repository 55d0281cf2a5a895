#include "rondo/core/hops.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "rondo/core/hop_timing.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

/// Of its bandwidth, what a link that is down counts as having where only distances are asked for.
constexpr double kDown = 1e-3;

/// Paths with the fewest links from one GPU to all others, found backwards over the levels of a breadth-first
/// search that goes on only at switches.
class PathSearch {
 public:
  PathSearch(const Topology& topology, NodeId source, std::size_t max_paths)
      : topology_(topology), source_(source), max_paths_(max_paths), level_(topology.num_nodes(), -1) {
    level_[source.index()] = 0;
    first_link_.resize(topology.num_nodes());
    std::vector<NodeId> frontier{source};
    for (int depth = 1; !frontier.empty(); ++depth) {
      std::vector<NodeId> next;
      for (const NodeId n : frontier) {
        for (const LinkId l : topology.out_links(n)) {
          const NodeId m = topology.link(l).dst;
          if (level_[m.index()] >= 0) continue;
          level_[m.index()] = depth;
          first_link_[m.index()] = n == source ? l : first_link_[n.index()];
          if (!topology.is_gpu(m)) next.push_back(m);
        }
      }
      frontier = std::move(next);
    }
  }

  /// GPUs that some path leads to, ascending; of those equally many links away behind the same switch at most
  /// about `most`: where there are more, those at distances of 1, 2, 4, ... GPU numbers up and down.
  std::vector<GpuId> targets(std::size_t most) const {
    std::map<std::pair<int, LinkId>, std::vector<GpuId>> groups;
    const std::size_t gpus = topology_.num_gpus();
    for (std::size_t i = 1; i < gpus; ++i) {  // from the source's number on, around
      const GpuId g{(topology_.gpu_of(source_).index() + i) % gpus};
      const std::size_t n = topology_.node_of(g).index();
      if (level_[n] > 0) groups[{level_[n], level_[n] == 1 ? LinkId{} : first_link_[n]}].push_back(g);
    }
    std::vector<GpuId> kept;
    for (const auto& [key, group] : groups) {
      if (key.first == 1 || group.size() <= most) {
        kept.insert(kept.end(), group.begin(), group.end());
        continue;
      }
      for (std::size_t step = 1; 2 * step <= group.size() + 1; step *= 2) {
        kept.push_back(group[step - 1]);
        if (2 * step <= group.size()) kept.push_back(group[group.size() - step]);
      }
    }
    std::ranges::sort(kept);
    return kept;
  }

  std::vector<std::vector<LinkId>> paths_to(NodeId target) {
    paths_.clear();
    reversed_.clear();
    if (level_[target.index()] > 0) {
      target_ = target;
      extend(target);
    }
    return std::move(paths_);
  }

 private:
  void extend(NodeId n) {
    if (n == source_) {
      paths_.emplace_back(reversed_.rbegin(), reversed_.rend());
      return;
    }
    // Where there are more paths than are kept, different pairs begin at different links, which spreads their
    // load.
    std::vector<LinkId> nearer;
    for (const LinkId l : topology_.in_links(n)) {
      const NodeId m = topology_.link(l).src;
      if (level_[m.index()] == level_[n.index()] - 1 && (m == source_ || !topology_.is_gpu(m)))
        nearer.push_back(l);
    }
    for (std::size_t i = 0; i < nearer.size() && paths_.size() < max_paths_; ++i) {
      reversed_.push_back(nearer[(source_.index() + target_.index() + i) % nearer.size()]);
      extend(topology_.link(reversed_.back()).src);
      reversed_.pop_back();
    }
  }

  const Topology& topology_;
  NodeId source_;
  NodeId target_;
  std::size_t max_paths_;
  std::vector<int> level_;
  std::vector<LinkId> first_link_;  ///< per node: of a shortest path
  std::vector<LinkId> reversed_;
  std::vector<std::vector<LinkId>> paths_;
};

/// From one GPU to all others the paths over switches whose slowest link is fastest; of those alike the one
/// with the fewest links.
class WidestPaths {
 public:
  WidestPaths(const Topology& topology, NodeId source) : topology_(topology), reached_(topology.num_nodes()) {
    std::priority_queue<Open> open;
    reached_[source.index()] = {std::numeric_limits<double>::infinity(), 0, LinkId{}};
    open.push({reached_[source.index()].GBps, 0, source});
    while (!open.empty()) {
      const auto [GBps, links, n] = open.top();
      open.pop();
      const Reached& here = reached_[n.index()];
      if (GBps < here.GBps || -links > here.links || (n != source && topology.is_gpu(n))) continue;
      for (const LinkId l : topology.out_links(n)) {
        const Link& link = topology.link(l);
        const Reached next{std::min(GBps, link.bandwidth_GBps), here.links + 1, l};
        Reached& there = reached_[link.dst.index()];
        if (next.GBps < there.GBps || (next.GBps == there.GBps && next.links >= there.links)) continue;
        there = next;
        open.push({next.GBps, -next.links, link.dst});
      }
    }
  }

  double width_GBps(NodeId target) const { return reached_[target.index()].GBps; }

  std::vector<LinkId> path_to(NodeId target) const {
    std::vector<LinkId> path;
    for (NodeId n = target; reached_[n.index()].links > 0; n = topology_.link(path.back()).src)
      path.push_back(reached_[n.index()].last);
    std::ranges::reverse(path);
    return path;
  }

 private:
  struct Reached {
    double GBps = 0;
    int links = 0;
    LinkId last = {};
  };
  struct Open {
    double GBps;
    int minus_links;
    NodeId node;
    friend bool operator<(const Open& a, const Open& b) {
      return std::tie(a.GBps, a.minus_links, b.node) < std::tie(b.GBps, b.minus_links, a.node);
    }
  };

  const Topology& topology_;
  std::vector<Reached> reached_;
};

double width_GBps(const Topology& topology, std::span<const LinkId> path) {
  double least = std::numeric_limits<double>::infinity();
  for (const LinkId l : path) least = std::min(least, topology.link(l).bandwidth_GBps);
  return least;
}

}  // namespace

Hop make_hop(const Topology& topology, std::span<const LinkId> links, std::span<const int> parents) {
  const auto parent = [&](std::size_t i) { return parents.empty() ? static_cast<int>(i) - 1 : parents[i]; };
  // All links of a cut-through section run at the rate of its slowest one, and each is kept for the greatest
  // message cost among them (FORMATS.md 3, rule 4).
  const auto begins_section = [&](std::size_t i) {
    return parent(i) < 0 || topology.node(topology.link(links[i]).src).forwarding != Forwarding::cut_through;
  };
  const auto section = [&](std::size_t i) {
    while (!begins_section(i)) i = index(parent(i));
    return i;
  };
  Hop hop{topology.gpu_of(topology.link(links.front()).src),
          topology.gpu_of(topology.link(links.back()).dst),
          {}};
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = topology.link(links[i]);
    hop.links.push_back({links[i], 0, 0, link.message_us, transmission_us(1, link.bandwidth_GBps)});
    hop.changes = hop.changes || !link.bandwidth_steps.empty();
    for (const BandwidthStep& step : link.bandwidth_steps) {
      const double GBps = std::max(step.GBps, kDown * link.bandwidth_GBps);
      hop.longest_us_per_byte = std::max(hop.longest_us_per_byte, transmission_us(1, GBps));
    }
    HopLink& first = hop.links[section(i)];
    first.us_per_byte = std::max(first.us_per_byte, hop.links[i].us_per_byte);
    first.message_us = std::max(first.message_us, link.message_us);
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    HopLink& part = hop.links[i];
    part.us_per_byte = hop.links[section(i)].us_per_byte;
    part.message_us = hop.links[section(i)].message_us;
    const double whole_us_per_byte = transmission_us(1, topology.link(part.link).bandwidth_GBps);
    if (whole_us_per_byte < part.us_per_byte * (1 - kWholeLink) && !hop.changes)
      part.share = whole_us_per_byte / part.us_per_byte;
    if (parent(i) < 0) continue;
    const HopLink& in = hop.links[index(parent(i))];
    part.offset_us =
        in.offset_us + topology.link(in.link).latency_us + (begins_section(i) ? in.message_us : 0);
    part.offset_us_per_byte = in.offset_us_per_byte + (begins_section(i) ? in.us_per_byte : 0);
  }
  const HopLink& last = hop.links.back();
  hop.fixed_us = last.offset_us + topology.link(last.link).latency_us + last.message_us;
  hop.us_per_byte = last.offset_us_per_byte + last.us_per_byte;
  hop.longest_us_per_byte = std::max(hop.longest_us_per_byte, hop.us_per_byte);
  return hop;
}

Hop slowed(Hop hop, double divisor) {
  hop.divisor *= divisor;
  hop.us_per_byte *= divisor;
  for (HopLink& part : hop.links) {
    part.us_per_byte *= divisor;
    part.offset_us_per_byte *= divisor;
    part.share /= divisor;
  }
  return hop;
}

void append_sends(const Topology& topology, const Hop& hop, std::span<const ChunkId> chunks, double bytes,
                  double t_us, std::vector<Send>& sends) {
  const bool is_numbered = chunks.size() > 1 || hop.divisor != 1 || (hop.changes && hop.links.size() > 1);
  const HopTiming timing = hop.changes ? timing_from(topology, hop, bytes, t_us) : HopTiming{};
  auto transfer = static_cast<std::int32_t>(sends.size());
  for (std::size_t i = 0; i < hop.links.size(); ++i) {
    const HopLink& part = hop.links[i];
    const Link& link = topology.link(part.link);
    const double start = hop.changes ? timing.uses[i].start_us : t_us + part.offset_us_of(bytes);
    const double end = hop.changes ? timing.uses[i].end_us : start + part.occupied_us(bytes);
    if (topology.node(link.src).forwarding == Forwarding::store_and_forward)
      transfer = static_cast<std::int32_t>(sends.size());
    for (const ChunkId chunk : chunks) {
      sends.push_back({chunk, part.link, start, end, end + link.latency_us});
      Send& send = sends.back();
      if (is_numbered) send.transfer = transfer;
      if (hop.divisor != 1) send.rate_GBps = part.rate_GBps();
    }
  }
}

std::vector<Hop> hops_from(const Topology& topology, GpuId src, std::size_t max_paths,
                           std::size_t max_peers) {
  std::vector<Hop> hops;
  PathSearch search(topology, topology.node_of(src), max_paths);
  const WidestPaths widest(topology, topology.node_of(src));
  for (const GpuId dst : search.targets(max_peers)) {
    const std::size_t first = hops.size();
    double width = 0;
    for (const auto& path : search.paths_to(topology.node_of(dst))) {
      hops.push_back(make_hop(topology, path));
      width = std::max(width, width_GBps(topology, path));
    }
    if (width < widest.width_GBps(topology.node_of(dst)))
      hops.push_back(make_hop(topology, widest.path_to(topology.node_of(dst))));
    std::stable_sort(hops.begin() + static_cast<std::ptrdiff_t>(first), hops.end(),
                     [](const Hop& a, const Hop& b) { return a.us_per_byte < b.us_per_byte; });
  }
  return hops;
}

HopTable::HopTable(const Topology& topology, std::size_t max_paths, double divisor)
    : out_(topology.num_gpus()), in_(topology.num_gpus()) {
  for (std::size_t s = 0; s < topology.num_gpus(); ++s) {
    for (Hop& hop : hops_from(topology, GpuId{s}, max_paths)) {
      const int h = static_cast<int>(hops_.size());
      out_[s].push_back(h);
      in_[hop.dst.index()].push_back(h);
      hops_.push_back(slowed(std::move(hop), divisor));
    }
  }
}

std::vector<double> HopTable::relay_distance_us(double bytes) const {
  Digraph graph{static_cast<int>(num_gpus()), {}};
  std::vector<double> length;
  for (const Hop& hop : hops_) {
    // Of several hops between two GPUs the fastest comes first in hops_ and decides.
    graph.arcs.push_back({hop.src.value, hop.dst.value});
    // What changes is not relied on.
    length.push_back(hop.changes ? hop.fixed_us + bytes * hop.longest_us_per_byte : hop.duration_us(bytes));
  }
  std::vector<double> distance;
  distance.reserve(num_gpus() * num_gpus());
  ShortestPathSearch search(graph);
  search.set_lengths(length);
  for (std::size_t s = 0; s < num_gpus(); ++s) {
    const ShortestPaths paths = search.from(static_cast<int>(s));
    distance.insert(distance.end(), paths.distance.begin(), paths.distance.end());
  }
  return distance;
}

}  // namespace rondo
