#include "topology_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "format_version.hpp"
#include "rondo/io/json_object.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMaxSourceBytes = 16'384;

/// Ids say no more than the position; what they say has to be true, or links would join other nodes than
/// meant.
void check_id(const JsonObject& object, std::size_t position) {
  const std::int64_t id = object.integer("id");
  if (id == static_cast<std::int64_t>(position)) return;
  object.refuse(fmt::format("id is {}{}; ids are 0, 1, 2, ... in file order, so it has to be {}", id,
                            id < static_cast<std::int64_t>(position) ? ", a duplicate" : "", position));
}

Forwarding read_forwarding(const JsonObject& object) {
  const std::string name = object.text_or("forwarding", "cut_through");
  if (name == "cut_through") return Forwarding::cut_through;
  if (name == "store_and_forward") return Forwarding::store_and_forward;
  object.refuse(fmt::format("forwarding is '{}'; it has to be cut_through or store_and_forward", name));
}

Node read_node(const JsonObject& object, std::size_t position, int version) {
  Node node;
  const std::string kind = object.text("kind");
  if (kind == "gpu") {
    object.check_keys({"id", "kind", "chassis", "name", "buffer_bytes"});
    if (object.has("buffer_bytes")) node.relay_bytes = object.number("buffer_bytes");
  } else if (kind == "switch") {
    object.check_keys({"id", "kind", "chassis", "name", "multicast", "reduce", "forwarding", "buffer_bytes"});
    object.check_version(version, {"reduce"});
    node.kind = NodeKind::switch_;
    node.multicast = object.flag_or("multicast", true);
    node.reduce = object.flag_or("reduce", false);
    node.forwarding = read_forwarding(object);
    node.buffer_bytes = object.number_or("buffer_bytes", 0);
  } else {
    object.refuse(fmt::format("kind is '{}'; it has to be gpu or switch", kind));
  }
  check_id(object, position);
  if (object.has("chassis")) node.chassis = static_cast<int>(object.integer("chassis"));
  node.name = object.text_or("name", "");
  return node;
}

NodeId read_end(const JsonObject& object, const char* key, std::size_t num_nodes) {
  return NodeId(static_cast<std::int32_t>(
      object.integer(key, {.least = 0, .greatest = static_cast<std::int64_t>(num_nodes) - 1})));
}

std::vector<BandwidthStep> read_steps(const JsonObject& object) {
  std::vector<BandwidthStep> steps;
  if (!object.has("bandwidth_steps")) return steps;
  object.for_each_object("bandwidth_steps", [&](const JsonObject& step, std::size_t) {
    step.check_keys({"from_us", "GBps"});
    steps.push_back({.from_us = step.number("from_us"), .GBps = step.number("GBps")});
  });
  if (steps.empty()) object.refuse("bandwidth_steps is empty; leave it out, or begin from 0 us");
  return steps;
}

Link read_link(const JsonObject& object, std::size_t position, std::size_t num_nodes, int version) {
  object.check_keys({"id", "src", "dst", "bandwidth_GBps", "latency_us", "message_us", "bandwidth_steps"});
  object.check_version(version, {"message_us"});
  check_id(object, position);
  return {.src = read_end(object, "src", num_nodes),
          .dst = read_end(object, "dst", num_nodes),
          .bandwidth_GBps = object.number("bandwidth_GBps"),
          .latency_us = object.number("latency_us"),
          .message_us = object.number_or("message_us", 0),
          .bandwidth_steps = read_steps(object)};
}

SharedBandwidth read_group(const JsonObject& object, std::size_t num_links) {
  object.check_keys({"name", "links", "bandwidth_GBps"});
  SharedBandwidth group;
  group.name = object.text_or("name", "");
  for (const std::int64_t link :
       object.integers("links", {.least = 0, .greatest = static_cast<std::int64_t>(num_links) - 1})) {
    group.links.push_back(LinkId(static_cast<std::int32_t>(link)));
  }
  group.bandwidth_GBps = object.number("bandwidth_GBps");
  return group;
}

Json node_to_json(std::size_t id, const Node& node) {
  Json json = {{"id", id}, {"kind", node.kind == NodeKind::gpu ? "gpu" : "switch"}};
  if (node.chassis) json["chassis"] = *node.chassis;
  if (!node.name.empty()) json["name"] = node.name;
  if (std::isfinite(node.relay_bytes)) json["buffer_bytes"] = node.relay_bytes;
  if (node.kind == NodeKind::switch_) {
    json["multicast"] = node.multicast;
    if (node.reduce) json["reduce"] = true;
    json["forwarding"] = node.forwarding == Forwarding::cut_through ? "cut_through" : "store_and_forward";
    if (node.buffer_bytes != 0) json["buffer_bytes"] = node.buffer_bytes;
  }
  return json;
}

Json link_to_json(std::size_t id, const Link& link) {
  Json json = {{"id", id},
               {"src", link.src.value},
               {"dst", link.dst.value},
               {"bandwidth_GBps", link.bandwidth_GBps},
               {"latency_us", link.latency_us}};
  if (link.message_us != 0) json["message_us"] = link.message_us;
  for (const BandwidthStep& step : link.bandwidth_steps)
    json["bandwidth_steps"].push_back({{"from_us", step.from_us}, {"GBps", step.GBps}});
  return json;
}

Json group_to_json(const SharedBandwidth& group) {
  Json links = Json::array();
  for (const LinkId l : group.links) links.push_back(l.value);
  return {{"name", group.name}, {"links", std::move(links)}, {"bandwidth_GBps", group.bandwidth_GBps}};
}

}  // namespace

Topology read_topology(const Json& json, const std::string& place) {
  const JsonObject object(json, place);
  const int version = object.check_format("rondo-topology");
  object.check_keys({"format", "version", "name", "source", "nodes", "links", "shared_bandwidth"});
  TopologyData data;
  data.name = object.text_or("name", "");
  data.source = object.text_or("source", "", kMaxSourceBytes);
  object.for_each_object("nodes", [&](const JsonObject& element, std::size_t i) {
    data.nodes.push_back(read_node(element, i, version));
  });
  object.for_each_object("links", [&](const JsonObject& element, std::size_t i) {
    data.links.push_back(read_link(element, i, data.nodes.size(), version));
  });
  if (object.has("shared_bandwidth")) {
    object.for_each_object("shared_bandwidth", [&](const JsonObject& element, std::size_t) {
      data.shared_bandwidth.push_back(read_group(element, data.links.size()));
    });
  }
  return Topology(std::move(data));
}

Topology topology_from_json(const Json& json) {
  return read_topology(json, "");
}

Json topology_to_json(const Topology& topology) {
  Json nodes = Json::array();
  for (const Node& node : topology.nodes()) nodes.push_back(node_to_json(nodes.size(), node));
  Json links = Json::array();
  for (const Link& link : topology.links()) links.push_back(link_to_json(links.size(), link));
  Json groups = Json::array();
  for (const SharedBandwidth& group : topology.shared_bandwidth()) groups.push_back(group_to_json(group));
  return {
      {"format", "rondo-topology"},           {"version", version_of(topology)}, {"name", topology.name()},
      {"source", topology.source()},          {"nodes", std::move(nodes)},       {"links", std::move(links)},
      {"shared_bandwidth", std::move(groups)}};
}

}  // namespace rondo
