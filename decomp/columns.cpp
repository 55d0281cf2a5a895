#include "rondo/decomp/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "rondo/core/epoch_grid.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo {

namespace {

/// One block a GPU that sends, between nodes of the topology.
std::vector<CommodityBlock> blocks_of(const Topology& topology, const Demand& demand) {
  if (!demand.is_unicast()) {
    throw Error(ExitCode::unavailable,
                "commodity blocks carry data with one destination each (AllToAll, Scatter, Gather); this "
                "demand is multicast");
  }
  std::map<GpuId, std::map<int, double>> wanted;
  for (const Contribution& c : demand.contributions()) {
    wanted[c.origin][topology.node_of(c.destinations.front()).value] += c.bytes;
  }
  std::vector<CommodityBlock> blocks;
  for (const auto& [origin, bytes_of_node] : wanted) {
    CommodityBlock& block = blocks.emplace_back(CommodityBlock{topology.node_of(origin).value});
    for (const auto& [node, bytes] : bytes_of_node) block.sinks.push_back({node, bytes});
  }
  return blocks;
}

/// The rows of all links, then of all groups, of a topology whose link l is arc `arc(l)`, or not there (-1).
template <class ArcOfLink>
void add_rows(const Topology& topology, double us, const ArcOfLink& arc, std::vector<CapacityRow>& rows) {
  const auto add = [&](std::span<const LinkId> links, double bandwidth_GBps) {
    CapacityRow row{{}, bandwidth_GBps * kBytesPerUsPerGBps * us};
    for (const LinkId l : links) {
      if (arc(l) >= 0) row.arcs.push_back(arc(l));
    }
    if (!row.arcs.empty()) rows.push_back(std::move(row));
  };
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const LinkId link{l};
    add({&link, 1}, topology.link(link).bandwidth_GBps);
  }
  for (const SharedBandwidth& group : topology.shared_bandwidth()) add(group.links, group.bandwidth_GBps);
}

}  // namespace

ConcurrentFlow steady_concurrent_flow(const Topology& topology, const Demand& demand) {
  ConcurrentFlow flow{topology.graph(), {}, blocks_of(topology, demand)};
  add_rows(
      topology, 1, [](LinkId l) { return l.value; }, flow.rows);
  return flow;
}

std::optional<TimedConcurrentFlow> timed_concurrent_flow(const Topology& topology, const Demand& demand,
                                                         double tau_us, int epochs) {
  const std::vector<int> landing = flow_landing_epochs(topology, tau_us);
  const std::vector<double> length(landing.begin(), landing.end());
  const auto times = epochs + 1;
  const auto node = [&](int v, int time) { return v * times + time; };
  TimedConcurrentFlow timed{{{static_cast<int>(topology.num_nodes()) * times, {}}, {}, {}}, {}};
  timed.flow.blocks = blocks_of(topology, demand);
  std::map<int, double> ready_us;
  for (const Contribution& c : demand.contributions()) {
    double& ready = ready_us[topology.node_of(c.origin).value];
    ready = std::max(ready, c.ready_us);
  }
  for (CommodityBlock& block : timed.flow.blocks) {
    const int ready = epochs_covering(ready_us[block.source], tau_us);
    const ShortestPaths path = shortest_paths(topology.graph(), length, block.source);
    for (Sink& sink : block.sinks) {
      if (ready + path.distance[static_cast<std::size_t>(sink.node)] > epochs) return std::nullopt;
      sink.node = node(sink.node, epochs);
    }
    block.source = node(block.source, ready);
  }
  Digraph& graph = timed.flow.graph;
  for (int k = 0; k < epochs; ++k) {
    std::vector<int> arc(topology.num_links(), -1);
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      if (k + landing[l] > epochs) continue;
      const Link& link = topology.links()[l];
      arc[l] = static_cast<int>(graph.arcs.size());
      graph.arcs.push_back({node(link.src.value, k), node(link.dst.value, k + landing[l])});
      timed.sends.push_back({LinkId{l}, k, k + landing[l]});
    }
    add_rows(
        topology, tau_us, [&](LinkId l) { return arc[l.index()]; }, timed.flow.rows);
  }
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const int v = topology.node_of(GpuId{g}).value;
    for (int k = 0; k < epochs; ++k) graph.arcs.push_back({node(v, k), node(v, k + 1)});
  }
  return timed;
}

std::vector<double> arc_lengths(const ConcurrentFlow& flow, const std::vector<double>& row_price) {
  std::vector<double> length(flow.graph.arcs.size(), 0.0);
  for (std::size_t r = 0; r < flow.rows.size(); ++r) {
    for (const int a : flow.rows[r].arcs) length[static_cast<std::size_t>(a)] += row_price[r];
  }
  return length;
}

BlockPricing::BlockPricing(const ConcurrentFlow& flow) : flow_(flow), search_(flow.graph) {}

FlowColumn BlockPricing::price(std::size_t block) {
  const CommodityBlock& commodity = flow_.blocks[block];
  const ShortestPaths paths = search_.from(commodity.source);
  const auto nodes = static_cast<std::size_t>(flow_.graph.num_nodes);
  std::vector<double> through(nodes, 0.0);
  FlowColumn column;
  for (const Sink& sink : commodity.sinks) {
    const auto node = static_cast<std::size_t>(sink.node);
    if (!std::isfinite(paths.distance[node])) {
      throw Error(ExitCode::unavailable,
                  fmt::format("node {} cannot be reached from node {}", sink.node, commodity.source));
    }
    through[node] += sink.amount;
    column.cost += sink.amount * paths.distance[node];
  }
  // Leaves first: a node passes its flow to its parent when all nodes below it have passed theirs to it.
  std::vector<int> children(nodes, 0);
  const auto parent = [&](std::size_t v) {
    return static_cast<std::size_t>(flow_.graph.arcs[static_cast<std::size_t>(paths.last_arc[v])].src);
  };
  for (std::size_t v = 0; v < nodes; ++v) {
    if (paths.last_arc[v] >= 0) ++children[parent(v)];
  }
  for (std::size_t leaf = 0; leaf < nodes; ++leaf) {
    for (std::size_t v = leaf; children[v] == 0 && paths.last_arc[v] >= 0; v = parent(v)) {
      children[v] = -1;  // done
      through[parent(v)] += through[v];
      if (through[v] > 0) column.loads.push_back({paths.last_arc[v], through[v]});
      --children[parent(v)];
    }
  }
  std::sort(column.loads.begin(), column.loads.end(),
            [](const ArcLoad& a, const ArcLoad& b) { return a.arc < b.arc; });
  return column;
}

RowLoads::RowLoads(const ConcurrentFlow& flow) : flow_(flow), rows_of_arc_(flow.graph.arcs.size()) {
  for (std::size_t r = 0; r < flow.rows.size(); ++r) {
    for (const int a : flow.rows[r].arcs)
      rows_of_arc_[static_cast<std::size_t>(a)].push_back(static_cast<int>(r));
  }
}

std::vector<RowLoad> RowLoads::of(std::span<const ArcLoad> loads) const {
  std::vector<RowLoad> result;
  for (const ArcLoad& load : loads) {
    for (const int r : rows_of_arc_[static_cast<std::size_t>(load.arc)]) {
      result.push_back({r, load.amount / flow_.rows[static_cast<std::size_t>(r)].capacity});
    }
  }
  std::sort(result.begin(), result.end(), [](const RowLoad& a, const RowLoad& b) { return a.row < b.row; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < result.size(); ++i) {
    if (result[i].row == result[last].row) {
      result[last].theta += result[i].theta;
    } else {
      result[++last] = result[i];
    }
  }
  if (!result.empty()) result.resize(last + 1);
  return result;
}

std::vector<double> normalised_prices(const ConcurrentFlow& flow, std::vector<double> price) {
  double sum = 0;
  for (std::size_t r = 0; r < price.size(); ++r) sum += flow.rows[r].capacity * price[r];
  for (std::size_t r = 0; r < price.size(); ++r) {
    price[r] = sum > 0 ? price[r] / sum : 1 / (flow.rows[r].capacity * static_cast<double>(price.size()));
  }
  return price;
}

std::vector<double> mixed_prices(const std::vector<double>& a, const std::vector<double>& b, double share) {
  std::vector<double> mixed(a.size());
  for (std::size_t r = 0; r < a.size(); ++r) mixed[r] = (1 - share) * a[r] + share * b[r];
  return mixed;
}

}  // namespace rondo
