#include "topology_hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rondo {
namespace {

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
  std::vector<std::string> forwarding;
  std::vector<double> buffer_bytes;
  for (const Node& node : nodes) {
    kind.push_back(node.kind == NodeKind::gpu ? kGpu : kSwitch);
    chassis.push_back(node.chassis.value_or(-1));
    name.push_back(node.name);
    multicast.push_back(node.multicast ? 1 : 0);
    forwarding.push_back(node.forwarding == Forwarding::cut_through ? kCutThrough : kStoreAndForward);
    buffer_bytes.push_back(node.buffer_bytes);
  }
  group.put_array("kind", kind);
  group.put_array("chassis", chassis, H5T_STD_I32LE);
  group.put_array("name", name);
  group.put_array("multicast", multicast, H5T_STD_U8LE);
  group.put_array("forwarding", forwarding);
  group.put_array("buffer_bytes", buffer_bytes, "bytes");
}

std::vector<Node> read_nodes(const Hdf5GroupReader& group) {
  group.check_members({"kind", "chassis", "name", "multicast", "forwarding", "buffer_bytes"});
  const auto kind = group.texts("kind");
  const auto chassis = group.integers("chassis");
  const auto name = group.texts("name");
  const auto multicast = group.integers("multicast");
  const auto forwarding = group.texts("forwarding");
  const auto buffer_bytes = group.numbers("buffer_bytes");
  check_count(group, "chassis", chassis, kind.size());
  check_count(group, "name", name, kind.size());
  check_count(group, "multicast", multicast, kind.size());
  check_count(group, "forwarding", forwarding, kind.size());
  check_count(group, "buffer_bytes", buffer_bytes, kind.size());
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
    nodes[n].forwarding =
        forwarding[n] == kCutThrough ? Forwarding::cut_through : Forwarding::store_and_forward;
    nodes[n].buffer_bytes = buffer_bytes[n];
  }
  return nodes;
}

void write_links(const Hdf5GroupWriter& group, const std::vector<Link>& links) {
  std::vector<std::int64_t> src;
  std::vector<std::int64_t> dst;
  std::vector<double> bandwidth_GBps;
  std::vector<double> latency_us;
  for (const Link& link : links) {
    src.push_back(link.src.value);
    dst.push_back(link.dst.value);
    bandwidth_GBps.push_back(link.bandwidth_GBps);
    latency_us.push_back(link.latency_us);
  }
  group.put_array("src", src, H5T_STD_I32LE);
  group.put_array("dst", dst, H5T_STD_I32LE);
  group.put_array("bandwidth_GBps", bandwidth_GBps, "GB/s");
  group.put_array("latency_us", latency_us, "us");
}

std::vector<Link> read_links(const Hdf5GroupReader& group, std::size_t num_nodes) {
  group.check_members({"src", "dst", "bandwidth_GBps", "latency_us"});
  const auto src = group.integers("src");
  const auto dst = group.integers("dst");
  const auto bandwidth_GBps = group.numbers("bandwidth_GBps");
  const auto latency_us = group.numbers("latency_us");
  check_count(group, "dst", dst, src.size());
  check_count(group, "bandwidth_GBps", bandwidth_GBps, src.size());
  check_count(group, "latency_us", latency_us, src.size());
  std::vector<Link> links(src.size());
  for (std::size_t l = 0; l < links.size(); ++l) {
    links[l] = {.src = checked_id<NodeId>(group, "src", src[l], num_nodes),
                .dst = checked_id<NodeId>(group, "dst", dst[l], num_nodes),
                .bandwidth_GBps = bandwidth_GBps[l],
                .latency_us = latency_us[l]};
  }
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
  if (index.front() != 0 || !std::is_sorted(index.begin(), index.end()) ||
      index.back() != static_cast<std::int64_t>(value.size())) {
    group.refuse("links_index", fmt::format("it has to ascend from 0 to {}", value.size()));
  }
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
  group.put("version", std::int64_t{1});
  group.put("name", topology.name());
  group.put("source", topology.source());
  write_nodes(group.create_group("nodes"), topology.nodes());
  write_links(group.create_group("links"), topology.links());
  write_groups(group.create_group("shared_bandwidth"), topology.shared_bandwidth());
}

Topology read_topology(const Hdf5GroupReader& group) {
  group.check_members({"format", "version", "name", "source", "nodes", "links", "shared_bandwidth"});
  group.check_format("rondo-topology");
  TopologyData data;
  data.name = group.text("name");
  data.source = group.text("source");
  data.nodes = read_nodes(group.open_group("nodes"));
  data.links = read_links(group.open_group("links"), data.nodes.size());
  data.shared_bandwidth = read_groups(group.open_group("shared_bandwidth"), data.links.size());
  return Topology(std::move(data));
}

}  // namespace rondo
