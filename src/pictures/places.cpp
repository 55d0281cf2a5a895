#include "places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "text.hpp"

namespace rondo::pictures {
namespace {

std::set<NodeId> neighbours(const Topology& topology, NodeId node) {
  std::set<NodeId> result;
  for (const LinkId l : topology.out_links(node)) result.insert(topology.link(l).dst);
  for (const LinkId l : topology.in_links(node)) result.insert(topology.link(l).src);
  return result;
}

/// A key per node; nodes with equal keys >= 0 share a place, -1 stands alone.
std::vector<int> chassis_keys(const Topology& topology) {
  std::vector<int> keys(topology.num_nodes(), -1);
  std::map<int, int> number;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    if (!topology.nodes()[n].chassis) continue;
    keys[n] = number.try_emplace(*topology.nodes()[n].chassis, static_cast<int>(number.size())).first->second;
  }
  const std::vector<int> given = keys;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    if (topology.is_gpu(NodeId(n)) || given[n] >= 0) continue;
    std::set<int> around;
    for (const NodeId neighbour : neighbours(topology, NodeId(n))) around.insert(given[neighbour.index()]);
    if (around.size() == 1) keys[n] = *around.begin();
  }
  return keys;
}

std::vector<int> switch_keys(const Topology& topology) {
  std::vector<int> keys(topology.num_nodes(), -1);
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const NodeId gpu = topology.node_of(GpuId(g));
    const std::set<NodeId> around = neighbours(topology, gpu);
    if (around.size() != 1 || topology.is_gpu(*around.begin())) continue;
    keys[gpu.index()] = around.begin()->value;
    keys[around.begin()->index()] = around.begin()->value;
  }
  return keys;
}

/// The links by `key`, rows in the order of their first link.
std::vector<Row> grouped(const Topology& topology, const std::function<std::string(const Link&)>& key) {
  std::vector<Row> rows;
  std::map<std::string, std::size_t> row_of;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const std::string label = key(topology.links()[l]);
    const auto [it, is_new] = row_of.try_emplace(label, rows.size());
    if (is_new) rows.push_back({label, {}});
    rows[it->second].links.push_back(LinkId(l));
  }
  return rows;
}

std::vector<Row> blocks_of_neighbours(const Topology& topology, std::size_t most) {
  const std::size_t width = (topology.num_nodes() + most - 1) / most;
  std::vector<Row> rows = grouped(topology, [&](const Link& link) {
    const std::size_t first = link.src.index() / width * width;
    const std::size_t last = std::min(first + width, topology.num_nodes()) - 1;
    return first == last ? "out of " + node_label(topology, NodeId(first))
                         : fmt::format("out of {} … {}", node_label(topology, NodeId(first)),
                                       node_label(topology, NodeId(last)));
  });
  const auto source = [&](const Row& row) { return topology.link(row.links.front()).src; };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return source(a) < source(b); });
  return rows;
}

}  // namespace

std::size_t Places::num_groups() const {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const Place& place) { return place.size() > 1; }));
}

Places places_of(const Topology& topology) {
  const auto& nodes = topology.nodes();
  const bool has_chassis =
      std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.chassis.has_value(); });
  const std::vector<int> keys = has_chassis ? chassis_keys(topology) : switch_keys(topology);
  Places places{.all = {}, .of_node = std::vector<int>(nodes.size(), -1)};
  std::map<int, int> place_of_key;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    int place = static_cast<int>(places.all.size());
    if (keys[n] >= 0) place = place_of_key.try_emplace(keys[n], place).first->second;
    if (place == static_cast<int>(places.all.size())) {
      std::string label = node_label(topology, NodeId(n));
      if (has_chassis && keys[n] >= 0 && nodes[n].chassis) {
        label = fmt::format("chassis {}", *nodes[n].chassis);
      } else if (keys[n] >= 0) {
        label = node_label(topology, NodeId(keys[n]));
      }
      places.all.push_back({.label = std::move(label)});
    }
    Place& members = places.all[static_cast<std::size_t>(place)];
    (topology.is_gpu(NodeId(n)) ? members.gpus : members.switches).push_back(NodeId(n));
    places.of_node[n] = place;
  }
  return places;
}

std::vector<Row> timeline_rows(const Topology& topology, const Places& places, std::size_t most) {
  if (topology.num_links() <= most) {
    std::vector<Row> rows;
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      rows.push_back({link_label(topology, LinkId(l)), {LinkId(l)}});
    }
    return rows;
  }
  const auto place = [&](NodeId n) -> const Place& {
    return places.all[static_cast<std::size_t>(places.of_node[n.index()])];
  };
  const auto joined = [&](const std::function<std::string(NodeId)>& name) {
    return grouped(topology, [&](const Link& link) {
      return &place(link.src) == &place(link.dst) ? "inside " + place(link.src).label
                                                  : name(link.src) + " → " + name(link.dst);
    });
  };
  if (places.num_groups() > 1) {
    std::vector<Row> rows = joined([&](NodeId n) { return place(n).label; });
    if (rows.size() <= most) return rows;
    rows =
        joined([&](NodeId n) { return place(n).size() > 1 ? place(n).label : std::string("other nodes"); });
    if (rows.size() <= most) return rows;
    rows = grouped(topology, [&](const Link& link) {
      return &place(link.src) == &place(link.dst) ? "inside " + place(link.src).label
                                                  : "out of " + place(link.src).label;
    });
    if (rows.size() <= most) return rows;
  }
  return blocks_of_neighbours(topology, most);
}

std::vector<int> row_of_links(const std::vector<Row>& rows, std::size_t num_links) {
  std::vector<int> row_of(num_links, -1);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const LinkId l : rows[r].links) row_of[l.index()] = static_cast<int>(r);
  }
  return row_of;
}

}  // namespace rondo::pictures
