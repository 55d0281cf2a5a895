#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rondo/core/ids.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {

enum class NodeKind { gpu, switch_ };
enum class Forwarding { cut_through, store_and_forward };

struct Node {
  NodeKind kind = NodeKind::gpu;
  std::optional<int> chassis = std::nullopt;
  std::string name = {};
  bool multicast = true;                            ///< switch: may copy
  bool reduce = false;                              ///< switch: may add
  Forwarding forwarding = Forwarding::cut_through;  ///< switch
  double buffer_bytes = 0;                          ///< switch, store-and-forward
  /// GPU: bytes of chunks that it may hold to pass them on, besides what it brought and what it wants.
  double relay_bytes = std::numeric_limits<double>::infinity();

  /// Whether transfers end there, though it is no GPU.
  bool stores() const { return kind == NodeKind::switch_ && forwarding == Forwarding::store_and_forward; }
};

/// The bandwidth of a link from a time on; 0: the link is down.
struct BandwidthStep {
  double from_us = 0;
  double GBps = 0;

  friend bool operator==(const BandwidthStep&, const BandwidthStep&) = default;
};

struct Link {
  NodeId src;
  NodeId dst;
  double bandwidth_GBps = 0;  ///< at time 0
  double latency_us = 0;
  double message_us = 0;  ///< for which every transfer keeps the link besides its bytes
  std::vector<BandwidthStep> bandwidth_steps = {};  ///< ascending from 0; empty: the bandwidth never changes
};

/// At every instant the rates of the transmitting links of the group sum to at most `bandwidth_GBps`.
struct SharedBandwidth {
  std::string name;
  std::vector<LinkId> links;
  double bandwidth_GBps = 0;
};

/// What a topology is made from: the fields of FORMATS.md 1.
struct TopologyData {
  std::string name = {};
  std::string source = {};
  std::vector<Node> nodes = {};
  std::vector<Link> links = {};
  std::vector<SharedBandwidth> shared_bandwidth = {};
};

/// Caps; beyond them Error(unavailable).
inline constexpr std::size_t kMaxNodes = 1'000'000;
inline constexpr std::size_t kMaxLinks = 10'000'000;

/// A topology: GPUs, switches and directed links. Immutable.
class Topology {
 public:
  /// Throws Error(bad_data) for a dangling end, a self-loop, a bandwidth that is not positive and finite, a
  /// negative or infinite latency or message cost, bandwidth steps that do not ascend from 0 and from the
  /// link's bandwidth, a negative buffer, fewer than two GPUs, or a group with a bad link or bandwidth;
  /// Error(unavailable) beyond kMaxNodes or kMaxLinks. Reachability depends on the demand and is
  /// checked there (check_reachable in collective.hpp).
  explicit Topology(TopologyData data);

  const std::string& name() const { return data_.name; }
  const std::string& source() const { return data_.source; }
  const std::vector<Node>& nodes() const { return data_.nodes; }
  const std::vector<Link>& links() const { return data_.links; }
  const std::vector<SharedBandwidth>& shared_bandwidth() const { return data_.shared_bandwidth; }
  const TopologyData& data() const { return data_; }

  const Node& node(NodeId n) const { return data_.nodes[n.index()]; }
  const Link& link(LinkId l) const { return data_.links[l.index()]; }
  std::size_t num_nodes() const { return data_.nodes.size(); }
  std::size_t num_links() const { return data_.links.size(); }
  std::size_t num_gpus() const { return gpu_node_.size(); }

  bool is_gpu(NodeId n) const { return node(n).kind == NodeKind::gpu; }
  NodeId node_of(GpuId g) const { return gpu_node_[g.index()]; }
  GpuId gpu_of(NodeId n) const { return node_gpu_[n.index()]; }  ///< invalid for a switch
  std::span<const LinkId> out_links(NodeId n) const { return out_links_[n.index()]; }
  std::span<const LinkId> in_links(NodeId n) const { return in_links_[n.index()]; }

  /// What a transfer that begins on the link waits before its bytes leave: its message cost, 0 behind
  /// cut-through switches, where none begins.
  double message_us_at_start(const Link& link) const {
    const Node& from = node(link.src);
    return from.kind == NodeKind::gpu || from.stores() ? link.message_us : 0;
  }

  bool has_message_costs() const { return has_message_costs_; }      ///< of any link
  bool has_bandwidth_steps() const { return has_bandwidth_steps_; }  ///< on any link
  bool has_adding_switches() const { return has_adding_switches_; }
  bool limits_relay_memory() const { return limits_relay_memory_; }  ///< of any GPU

  /// Nodes and links under the same numbers.
  const Digraph& graph() const { return graph_; }

 private:
  TopologyData data_;
  std::vector<NodeId> gpu_node_;
  std::vector<GpuId> node_gpu_;
  std::vector<std::vector<LinkId>> out_links_;
  std::vector<std::vector<LinkId>> in_links_;
  Digraph graph_;
  bool has_message_costs_ = false;
  bool has_bandwidth_steps_ = false;
  bool has_adding_switches_ = false;
  bool limits_relay_memory_ = false;
};

/// The greatest bandwidth that the link ever has.
double greatest_GBps(const Link& link);

/// Multiplies a link's bandwidth at all times.
void scale_bandwidth(Link& link, double factor);

/// The same topology with every switch set to `forwarding`.
Topology with_switch_forwarding(const Topology& topology, Forwarding forwarding);

}  // namespace rondo
