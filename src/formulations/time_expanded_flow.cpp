#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "origins.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/graph/digraph.hpp"

/// maximise    x <= 1
/// subject to  B_{s,v,k-1} + sum_{l into v} F_{s,l,k-landing(l)} = sum_{l out of v} F_{s,l,k} + B_{s,v,k}
///                                                    for every origin s, node v != s and time k = 0 .. K
///             B_{s,v,K} = bytes(s, v) x
///             sum_s F_{s,l,k} <= bandwidth_l tau     for every link l and epoch k, and for every shared
///             bandwidth B, F >= 0; B = 0 at switches
///
/// Demand is read at the end alone: buffers are unlimited, so that earlier reads would change nothing.
/// What is equal by symmetry is decided once, as in steady_state_flow.cpp. Columns exist only where data of s
/// can be and can still reach a destination by K. Flows are counted in contributions of average bytes.
namespace rondo {
namespace {

/// What a division of times exceeds a whole number by through rounding errors alone costs no epoch.
constexpr double kRounding = 1e-9;

int whole_epochs(double us, double tau_us) {
  return static_cast<int>(std::ceil(us / tau_us - kRounding));
}

/// The latency into a cut-through switch is carried over to the link that leaves it, so that it costs whole
/// epochs once. Switches in a row count theirs link by link.
std::vector<int> landing_epochs(const Topology& topology, double tau_us) {
  const auto enters_cut_through = [&](const Link& link) {
    const Node& node = topology.node(link.dst);
    return node.kind == NodeKind::switch_ && node.forwarding == Forwarding::cut_through;
  };
  std::vector<double> carried_us(topology.num_nodes(), 0.0);
  for (const Link& link : topology.links()) {
    if (!topology.is_gpu(link.src) || !enters_cut_through(link)) continue;
    double& carried = carried_us[link.dst.index()];
    carried = std::max(carried, link.latency_us);
  }
  std::vector<int> landing;
  for (const Link& link : topology.links()) {
    const double us = link.latency_us + carried_us[link.src.index()];
    if (!enters_cut_through(link)) {
      landing.push_back(1 + whole_epochs(us, tau_us));
    } else {
      landing.push_back(topology.is_gpu(link.src) ? 0 : whole_epochs(us, tau_us));
    }
  }
  return landing;
}

Digraph reversed(const Digraph& graph) {
  Digraph result{graph.num_nodes, {}};
  for (const Arc& arc : graph.arcs) result.arcs.push_back({arc.dst, arc.src});
  return result;
}

/// Where and when the data of one origin can be.
struct Window {
  std::vector<double> first;  ///< per node: the time from which it can be there
  std::vector<double> last;   ///< per node: the time by which it has to be there
};

class Builder {
 public:
  explicit Builder(const Instance& instance)
      : topology_(*instance.topology),
        grid_(*instance.grid),
        unit_bytes_(mean_contribution_bytes(instance.demand)),
        origins_(origins_of(instance, "a time-expanded flow")),
        loads_(instance, origins_),
        landing_(landing_epochs(topology_, grid_.tau_us)) {}

  BuiltModel build() {
    delivered_ = model_.add_column(0, 1, -1);
    for (std::size_t i = 0; i < origins_.size(); ++i) add_origin(i);
    for (const int first : loads_.orbits().first) {
      const LinkId link{first};
      add_capacity({&link, 1}, topology_.link(link).bandwidth_GBps);
    }
    for (const SharedBandwidth& group : topology_.shared_bandwidth()) {
      add_capacity(group.links, group.bandwidth_GBps);
    }
    return {std::move(model_), decoder()};
  }

 private:
  struct Flow {
    GpuId origin;
    LinkId link;
    int epoch;
    int column;
  };
  /// Columns of one origin and orbit of links.
  struct Epochs {
    int first = 0;
    std::vector<int> column = {};
  };

  Window window_of(const Origin& origin) const {
    const std::vector<double> length(landing_.begin(), landing_.end());
    Window window;
    window.first = shortest_paths(topology_.graph(), length, topology_.node_of(origin.gpu).value).distance;
    for (double& first : window.first) first += whole_epochs(origin.ready_us, grid_.tau_us);

    Digraph back = reversed(topology_.graph());  // with a root before all destinations
    std::vector<double> back_length = length;
    const int root = back.num_nodes++;
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      if (origin.wanted[n] <= 0) continue;
      back.arcs.push_back({root, static_cast<int>(n)});
      back_length.push_back(0);
    }
    window.last = shortest_paths(back, back_length, root).distance;
    for (double& last : window.last) last = grid_.num_epochs - last;
    return window;
  }

  void add_origin(std::size_t i) {
    const Origin& origin = origins_[i];
    const Window window = window_of(origin);
    // Rows of an orbit of nodes are those of the times at which data of this origin can be there.
    std::vector<int> row(origin.nodes.first.size() * times(), -1);
    for (std::size_t o = 0; o < origin.nodes.first.size(); ++o) {
      const NodeId v{origin.nodes.first[o]};
      if (v == topology_.node_of(origin.gpu)) continue;
      for (std::size_t k = 0; k < times(); ++k) {
        const auto t = static_cast<double>(k);
        if (t >= window.first[v.index()] && t <= window.last[v.index()])
          row[o * times() + k] = model_.add_row(0, 0);
      }
      if (topology_.is_gpu(v)) add_buffers(&row[o * times()], origin.wanted[v.index()] / unit_bytes_);
    }
    add_flows(origin, window, row);
  }

  void add_buffers(const int* row, double wanted) {
    for (std::size_t k = 0; k + 1 < times(); ++k) {
      if (row[k] < 0 || row[k + 1] < 0) continue;
      const int column = model_.add_column(0, kInfinity, 0);
      model_.add_entry(row[k], column, -1);
      model_.add_entry(row[k + 1], column, 1);
    }
    if (wanted <= 0) return;
    if (row[times() - 1] >= 0) {
      model_.add_entry(row[times() - 1], delivered_, -wanted);
    } else {
      model_.column_upper[static_cast<std::size_t>(delivered_)] = 0;  // out of reach within K epochs
    }
  }

  void add_flows(const Origin& origin, const Window& window, const std::vector<int>& row) {
    const NodeId source = topology_.node_of(origin.gpu);
    const auto row_of = [&](NodeId n, int k) {
      return row[static_cast<std::size_t>(origin.node_orbit[n.index()]) * times() +
                 static_cast<std::size_t>(k)];
    };
    std::vector<Epochs>& columns = columns_.emplace_back(origin.links.first.size());
    for (int o = 0; o < origin.links.count(); ++o) {
      const auto l = static_cast<std::size_t>(origin.links.first[static_cast<std::size_t>(o)]);
      const Link& link = topology_.links()[l];
      if (link.dst == source) continue;
      Epochs& epochs = columns[static_cast<std::size_t>(o)];
      for (int k = 0; k < grid_.num_epochs; ++k) {
        const int lands = k + landing_[l];
        const bool there = k >= window.first[link.src.index()];
        const bool in_time = lands <= window.last[link.dst.index()];
        if (!there || !in_time) continue;
        const int column = model_.add_column(0, kInfinity, 0);
        if (epochs.column.empty()) epochs.first = k;
        epochs.column.push_back(column);
        const int head = row_of(link.dst, lands);
        const int tail = link.src == source ? -1 : row_of(link.src, k);
        if (head == tail) continue;  // between nodes of one orbit as much leaves as enters
        model_.add_entry(head, column, origin.links_a_head(o, link));
        if (tail >= 0) model_.add_entry(tail, column, -origin.links_a_tail(o, link));
      }
    }
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Epochs& epochs = columns[static_cast<std::size_t>(origin.link_orbit[l])];
      for (std::size_t k = 0; k < epochs.column.size(); ++k) {
        flows_.push_back({origin.gpu, LinkId{l}, epochs.first + static_cast<int>(k), epochs.column[k]});
      }
    }
  }

  void add_capacity(std::span<const LinkId> links, double bandwidth_GBps) {
    const double capacity = bandwidth_GBps * kBytesPerUsPerGBps * grid_.tau_us / unit_bytes_;
    const std::vector<LinkLoads::Share> shares = loads_.on(links);
    for (int k = 0; k < grid_.num_epochs; ++k) {
      const int row = model_.add_row(-kInfinity, capacity);
      for (const LinkLoads::Share& share : shares) {
        const Epochs& epochs = columns_[share.origin][static_cast<std::size_t>(share.link_orbit)];
        const int at = k - epochs.first;
        if (at < 0 || at >= static_cast<int>(epochs.column.size())) continue;
        model_.add_entry(row, epochs.column[static_cast<std::size_t>(at)], share.weight);
      }
    }
  }

  std::function<FlowField(const Solution&)> decoder() {
    return [flows = std::make_shared<const std::vector<Flow>>(std::move(flows_)), unit = unit_bytes_,
            landing = landing_, tau_us = grid_.tau_us](const Solution& solution) {
      FlowField field;
      field.link_landing = landing;
      for (const Flow& flow : *flows) {
        const double amount = solution.x[static_cast<std::size_t>(flow.column)];
        if (amount <= kRounding) continue;
        field.entries.push_back({flow.origin.value, flow.link, flow.epoch, amount * unit});
        field.finish_us = std::max(field.finish_us, (flow.epoch + landing[flow.link.index()]) * tau_us);
      }
      return field;
    };
  }

  /// 0 .. K
  std::size_t times() const { return static_cast<std::size_t>(grid_.num_epochs) + 1; }

  const Topology& topology_;
  const EpochGrid& grid_;
  double unit_bytes_;
  std::vector<Origin> origins_;
  LinkLoads loads_;
  std::vector<int> landing_;
  LinearModel model_;
  int delivered_ = 0;
  std::vector<Flow> flows_;                   ///< of representatives, over all links
  std::vector<std::vector<Epochs>> columns_;  ///< [origin][orbit of links]
};

}  // namespace

BuiltModel time_expanded_flow(const Instance& instance) {
  if (!instance.grid || instance.grid->num_epochs < 1) {
    throw Error(ExitCode::internal, "a time-expanded flow needs a grid with its number of epochs");
  }
  return Builder(instance).build();
}

}  // namespace rondo
