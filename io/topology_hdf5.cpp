#include "topology_hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "format_version.hpp"

namespace rondo {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kGpu = "gpu";
constexpr const char* kSwitch = "switch";
constexpr const char* kCutThrough = "cut_through";
constexpr const char* kStoreAndForward = "store_and_forward";

/// An id of a file; 0..count-1.
template <class Id>
Id checked_id(const Hdf5GroupReader& group, const char* name, std::int64_t value, std::size_t count) {
  if (value < 0 || static_cast<std::uint64_t>(value) >= count) {
    group.refuse(name, fmt::format("{} does not exist; it has to be below {}", value, count));
  }
  return Id(static_cast<std::int32_t>(value));
}

template <class T>
void check_count(const Hdf5GroupReader& group, const char* name, const std::vector<T>& values,
                 std::size_t count) {
  if (values.size() != count) {
    group.refuse(name, fmt::format("{} values; it has to have {}, as its siblings", values.size(), count));
  }
}

void write_nodes(const Hdf5GroupWriter& group, const std::vector<Node>& nodes) {
  std::vector<std::string> kind;
  std::vector<std::int64_t> chassis;
  std::vector<std::string> name;
  std::vector<std::int64_t> multicast;
  std::vector<std::int64_t> reduce;
  std::vector<std::string> forwarding;
  std::vector<double> buffer_bytes;
  std::vector<double> relay_bytes;
  for (const Node& node : nodes) {
    kind.push_back(node.kind == NodeKind::gpu ? kGpu : kSwitch);
    chassis.push_back(node.chassis.value_or(-1));
    name.push_back(node.name);
    multicast.push_back(node.multicast ? 1 : 0);
    reduce.push_back(node.reduce ? 1 : 0);
    forwarding.push_back(node.forwarding == Forwarding::cut_through ? kCutThrough : kStoreAndForward);
    buffer_bytes.push_back(node.buffer_bytes);
    relay_bytes.push_back(std::isfinite(node.relay_bytes) ? node.relay_bytes : kAbsent);
  }
  group.put_array("kind", kind);
  group.put_array("chassis", chassis, H5T_STD_I32LE);
  group.put_array("name", name);
  group.put_array("multicast", multicast, H5T_STD_U8LE);
  group.put_array("forwarding", forwarding);
  group.put_array("buffer_bytes", buffer_bytes, "bytes");
  if (!std::ranges::all_of(relay_bytes, [](double bytes) { return std::isnan(bytes); }))
    group.put_array("relay_bytes", relay_bytes, "bytes");
  if (std::ranges::count(reduce, 1) > 0) group.put_array("reduce", reduce, H5T_STD_U8LE);
}

std::vector<Node> read_nodes(const Hdf5GroupReader& group, int version) {
  group.check_members(
      {"kind", "chassis", "name", "multicast", "reduce", "forwarding", "buffer_bytes", "relay_bytes"});
  group.check_version(version, {"reduce", "relay_bytes"});
  const auto kind = group.texts("kind");
  const auto chassis = group.integers("chassis");
  const auto name = group.texts("name");
  const auto multicast = group.integers("multicast");
  const auto forwarding = group.texts("forwarding");
  const auto buffer_bytes = group.numbers("buffer_bytes");
  const auto reduce =
      group.has_link("reduce") ? group.integers("reduce") : std::vector<std::int64_t>(kind.size());
  const auto relay_bytes = group.has_link("relay_bytes") ? group.numbers("relay_bytes")
                                                         : std::vector<double>(kind.size(), kAbsent);
  check_count(group, "relay_bytes", relay_bytes, kind.size());
  check_count(group, "chassis", chassis, kind.size());
  check_count(group, "name", name, kind.size());
  check_count(group, "multicast", multicast, kind.size());
  check_count(group, "forwarding", forwarding, kind.size());
  check_count(group, "buffer_bytes", buffer_bytes, kind.size());
  check_count(group, "reduce", reduce, kind.size());
  std::vector<Node> nodes(kind.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (kind[n] != kGpu && kind[n] != kSwitch) {
      group.refuse("kind", fmt::format("'{}' of node {}; it has to be gpu or switch", kind[n], n));
    }
    if (forwarding[n] != kCutThrough && forwarding[n] != kStoreAndForward) {
      group.refuse("forwarding", fmt::format("'{}' of node {}; it has to be cut_through or store_and_forward",
                                             forwarding[n], n));
    }
    nodes[n].kind = kind[n] == kGpu ? NodeKind::gpu : NodeKind::switch_;
    if (chassis[n] >= 0) nodes[n].chassis = static_cast<int>(chassis[n]);
    nodes[n].name = name[n];
    nodes[n].multicast = multicast[n] != 0;
    nodes[n].reduce = reduce[n] != 0;
    nodes[n].forwarding =
        forwarding[n] == kCutThrough ? Forwarding::cut_through : Forwarding::store_and_forward;
    nodes[n].buffer_bytes = buffer_bytes[n];
    if (!std::isnan(relay_bytes[n])) nodes[n].relay_bytes = relay_bytes[n];
  }
  return nodes;
}

void write_links(const Hdf5GroupWriter& group, const std::vector<Link>& links) {
  std::vector<std::int64_t> src;
  std::vector<std::int64_t> dst;
  std::vector<double> bandwidth_GBps;
  std::vector<double> latency_us;
  std::vector<double> message_us;
  std::vector<std::int64_t> steps_index = {0};
  std::vector<double> steps_from_us;
  std::vector<double> steps_GBps;
  for (const Link& link : links) {
    src.push_back(link.src.value);
    dst.push_back(link.dst.value);
    bandwidth_GBps.push_back(link.bandwidth_GBps);
    latency_us.push_back(link.latency_us);
    message_us.push_back(link.message_us);
    for (const BandwidthStep& step : link.bandwidth_steps) {
      steps_from_us.push_back(step.from_us);
      steps_GBps.push_back(step.GBps);
    }
    steps_index.push_back(static_cast<std::int64_t>(steps_from_us.size()));
  }
  group.put_array("src", src, H5T_STD_I32LE);
  group.put_array("dst", dst, H5T_STD_I32LE);
  group.put_array("bandwidth_GBps", bandwidth_GBps, "GB/s");
  group.put_array("latency_us", latency_us, "us");
  if (std::ranges::any_of(message_us, [](double us) { return us != 0; }))
    group.put_array("message_us", message_us, "us");
  if (steps_from_us.empty()) return;
  group.put_array("steps_index", steps_index, H5T_STD_I64LE);
  group.put_array("steps_from_us", steps_from_us, "us");
  group.put_array("steps_GBps", steps_GBps, "GB/s");
}

/// Offsets of a list of lists of `total` values.
void check_offsets(const Hdf5GroupReader& group, const char* name, const std::vector<std::int64_t>& index,
                   std::size_t total) {
  if (index.front() == 0 && std::is_sorted(index.begin(), index.end()) &&
      index.back() == static_cast<std::int64_t>(total))
    return;
  group.refuse(name, fmt::format("it has to ascend from 0 to {}", total));
}

void read_steps(const Hdf5GroupReader& group, std::vector<Link>& links) {
  if (!group.has_link("steps_index")) return;
  const auto index = group.integers("steps_index");
  const auto from_us = group.numbers("steps_from_us");
  const auto GBps = group.numbers("steps_GBps");
  check_count(group, "steps_index", index, links.size() + 1);
  check_count(group, "steps_GBps", GBps, from_us.size());
  check_offsets(group, "steps_index", index, from_us.size());
  for (std::size_t l = 0; l < links.size(); ++l) {
    for (auto i = static_cast<std::size_t>(index[l]); i < static_cast<std::size_t>(index[l + 1]); ++i)
      links[l].bandwidth_steps.push_back({.from_us = from_us[i], .GBps = GBps[i]});
  }
}

std::vector<Link> read_links(const Hdf5GroupReader& group, std::size_t num_nodes, int version) {
  group.check_members({"src", "dst", "bandwidth_GBps", "latency_us", "message_us", "steps_index",
                       "steps_from_us", "steps_GBps"});
  group.check_version(version, {"message_us", "steps_index"});
  const auto src = group.integers("src");
  const auto dst = group.integers("dst");
  const auto bandwidth_GBps = group.numbers("bandwidth_GBps");
  const auto latency_us = group.numbers("latency_us");
  const auto message_us =
      group.has_link("message_us") ? group.numbers("message_us") : std::vector<double>(src.size());
  check_count(group, "dst", dst, src.size());
  check_count(group, "bandwidth_GBps", bandwidth_GBps, src.size());
  check_count(group, "latency_us", latency_us, src.size());
  check_count(group, "message_us", message_us, src.size());
  std::vector<Link> links(src.size());
  for (std::size_t l = 0; l < links.size(); ++l) {
    links[l] = {.src = checked_id<NodeId>(group, "src", src[l], num_nodes),
                .dst = checked_id<NodeId>(group, "dst", dst[l], num_nodes),
                .bandwidth_GBps = bandwidth_GBps[l],
                .latency_us = latency_us[l],
                .message_us = message_us[l]};
  }
  read_steps(group, links);
  return links;
}

void write_groups(const Hdf5GroupWriter& group, const std::vector<SharedBandwidth>& shared) {
  std::vector<std::string> name;
  std::vector<std::int64_t> index = {0};
  std::vector<std::int64_t> value;
  std::vector<double> bandwidth_GBps;
  for (const SharedBandwidth& s : shared) {
    name.push_back(s.name);
    for (const LinkId l : s.links) value.push_back(l.value);
    index.push_back(static_cast<std::int64_t>(value.size()));
    bandwidth_GBps.push_back(s.bandwidth_GBps);
  }
  group.put_array("name", name);
  group.put_array("links_index", index, H5T_STD_I64LE);
  group.put_array("links_value", value, H5T_STD_I32LE);
  group.put_array("bandwidth_GBps", bandwidth_GBps, "GB/s");
}

std::vector<SharedBandwidth> read_groups(const Hdf5GroupReader& group, std::size_t num_links) {
  group.check_members({"name", "links_index", "links_value", "bandwidth_GBps"});
  const auto name = group.texts("name");
  const auto index = group.integers("links_index");
  const auto value = group.integers("links_value");
  const auto bandwidth_GBps = group.numbers("bandwidth_GBps");
  check_count(group, "links_index", index, name.size() + 1);
  check_count(group, "bandwidth_GBps", bandwidth_GBps, name.size());
  check_offsets(group, "links_index", index, value.size());
  std::vector<SharedBandwidth> shared(name.size());
  for (std::size_t s = 0; s < shared.size(); ++s) {
    shared[s].name = name[s];
    shared[s].bandwidth_GBps = bandwidth_GBps[s];
    for (auto i = index[s]; i < index[s + 1]; ++i) {
      shared[s].links.push_back(
          checked_id<LinkId>(group, "links_value", value[static_cast<std::size_t>(i)], num_links));
    }
  }
  return shared;
}

}  // namespace

void write_topology(const Hdf5GroupWriter& group, const Topology& topology) {
  group.put("format", std::string("rondo-topology"));
  group.put("version", std::int64_t{version_of(topology)});
  group.put("name", topology.name());
  group.put("source", topology.source());
  write_nodes(group.create_group("nodes"), topology.nodes());
  write_links(group.create_group("links"), topology.links());
  write_groups(group.create_group("shared_bandwidth"), topology.shared_bandwidth());
}

Topology read_topology(const Hdf5GroupReader& group) {
  group.check_members({"format", "version", "name", "source", "nodes", "links", "shared_bandwidth"});
  const int version = group.check_format("rondo-topology");
  TopologyData data;
  data.name = group.text("name");
  data.source = group.text("source");
  data.nodes = read_nodes(group.open_group("nodes"), version);
  data.links = read_links(group.open_group("links"), data.nodes.size(), version);
  data.shared_bandwidth = read_groups(group.open_group("shared_bandwidth"), data.links.size());
  return Topology(std::move(data));
}

}  // namespace rondo
