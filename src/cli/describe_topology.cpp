#include "describe_topology.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "rondo/core/units.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

std::string kind_name(const Node& node) {
  return node.kind == NodeKind::gpu ? "GPU" : "switch";
}

std::string count_of(std::size_t count, const std::string& one, const std::string& many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string describe_nodes(const Topology& topology) {
  std::map<int, std::size_t> gpus_of_chassis;
  std::vector<std::vector<std::string>> switches = {
      {"switch", "name", "forwarding", "multicast", "reduce", "buffer"}};
  for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
    const Node& node = topology.nodes()[n];
    if (node.kind == NodeKind::gpu) {
      if (node.chassis) ++gpus_of_chassis[*node.chassis];
      continue;
    }
    const bool cut_through = node.forwarding == Forwarding::cut_through;
    switches.push_back({std::to_string(n), node.name, cut_through ? "cut_through" : "store_and_forward",
                        node.multicast ? "yes" : "no", node.reduce ? "yes" : "no",
                        cut_through             ? ""
                        : node.buffer_bytes > 0 ? format_size(node.buffer_bytes)
                                                : "none"});
  }
  std::string text;
  for (const auto& [chassis, gpus] : gpus_of_chassis) {
    text += fmt::format("chassis {}: {}\n", chassis, count_of(gpus, "GPU", "GPUs"));
  }
  if (switches.size() > 1) text += fmt::format("\n{}", format_table(switches));
  return text;
}

/// "25 GB/s from 100 us, down from 200 us"; "" where the bandwidth never changes.
std::string steps_text(const Link& link) {
  std::string text;
  for (std::size_t i = 1; i < link.bandwidth_steps.size(); ++i) {
    const BandwidthStep& step = link.bandwidth_steps[i];
    text += fmt::format("{}{} from {} us", i == 1 ? "" : ", ",
                        step.GBps > 0 ? fmt::format("{} GB/s", step.GBps) : "down", step.from_us);
  }
  return text;
}

std::string describe_links(const Topology& topology) {
  using Class = std::tuple<std::string, std::string, double, double, double, std::string>;
  std::map<Class, std::size_t> count;
  for (const Link& link : topology.links()) {
    ++count[{kind_name(topology.node(link.src)), kind_name(topology.node(link.dst)), link.bandwidth_GBps,
             link.latency_us, link.message_us, steps_text(link)}];
  }
  std::vector<std::vector<std::string>> rows = {{"links", "from", "to", "bandwidth", "latency"}};
  if (topology.has_message_costs()) rows.front().push_back("a message");
  if (topology.has_bandwidth_steps()) rows.front().push_back("later");
  for (const auto& [link_class, links] : count) {
    const auto& [from, to, bandwidth, latency, message, steps] = link_class;
    rows.push_back(
        {std::to_string(links), from, to, fmt::format("{} GB/s", bandwidth), fmt::format("{} us", latency)});
    if (topology.has_message_costs()) rows.back().push_back(fmt::format("{} us", message));
    if (topology.has_bandwidth_steps()) rows.back().push_back(steps);
  }
  return format_table(rows);
}

}  // namespace

std::string topology_line(const Topology& topology) {
  return fmt::format("{}: {}, {}, {}", topology.name(), count_of(topology.num_gpus(), "GPU", "GPUs"),
                     count_of(topology.num_nodes() - topology.num_gpus(), "switch", "switches"),
                     count_of(topology.num_links(), "link", "links"));
}

std::string describe_topology(const Topology& topology) {
  std::string text = topology_line(topology) + "\n";
  if (!topology.source().empty()) text += fmt::format("source: {}\n", topology.source());
  text += fmt::format("{}\n{}", describe_nodes(topology), describe_links(topology));
  if (topology.shared_bandwidth().empty()) return text;
  std::vector<std::vector<std::string>> rows = {{"shared by", "bandwidth", "name"}};
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    rows.push_back({count_of(group.links.size(), "link", "links"),
                    fmt::format("{} GB/s", group.bandwidth_GBps), group.name});
  }
  return fmt::format("{}\n{}", text, format_table(rows));
}

}  // namespace rondo::cli
