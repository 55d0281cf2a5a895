#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "by_time.hpp"
#include "origins.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/hop_timing.hpp"
#include "rondo/core/units.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/graph/digraph.hpp"
#include "stretches.hpp"

// clang-format off
/// maximise    x <= 1
/// subject to  B_{s,v,k-1} + sum_{l into v} f_{s,l,k-landing(l)} = sum_{l out of v} f_{s,l,k} + B_{s,v,k}
///                                                    for every origin s, node v != s and time k = 0 .. K
///             B_{s,v,K} = bytes(s, v) x
///             sum_s f_{s,l,k} <= bandwidth_l tau     for every link l and epoch k, and for every shared bandwidth;
///                                                    the integral over the epoch where bandwidth_l changes
///             B, f >= 0; B = 0 at switches
// clang-format on
///
/// Demand is met at the end of the last epoch only: buffers are unlimited, so earlier deadlines would change
/// nothing. Flows equal by symmetry share a column, as in steady_state_flow.cpp. Columns exist only where the
/// data of s can be and can still reach a destination by K. Flows are counted in contributions of average
/// bytes.
///
/// Fixed flows enter the balances of their two ends with the factor x.
///
/// Columns and rows are numbered origin by origin, and those dealt among ranks by time: by origin every
/// capacity has entries in most shares, by time only what lies between two of them.
///
/// On a grid of intervals f_{s,l,k} is the same for all epochs k of an interval, and one column F = f x
/// epochs
/// represents them. This only restricts the flow, which remains a flow on the epochs. Consecutive times at
/// which nothing changes at a node form a stretch and share one row, in which arrivals and departures are
/// weighted by epochs; the buffer at its end has a column, and those inside it lie between the two ends.
namespace rondo {
namespace {

/// Amounts and matrix entries below this are rounding errors.
constexpr double kRounding = 1e-9;

/// The nodes and times at which the data of one origin can be.
struct Window {
  std::vector<double> first;  ///< per node: the time from which it can be there
  std::vector<double> last;   ///< per node: the time by which it has to be there
};

class FlowBuilder {
 public:
  /// `kept`: by the numbers of time, if they are given.
  FlowBuilder(const Instance& instance, ColumnRange kept,
              std::shared_ptr<const NumbersByTime> numbers = nullptr)
      : topology_(*instance.topology),
        grid_(*instance.grid),
        interval_bounds_(interval_bounds(instance)),
        unit_bytes_(mean_contribution_bytes(instance.demand)),
        origins_(origins_of(instance, "a time-expanded flow")),
        loads_(instance, origins_),
        landing_(flow_landing_epochs(topology_, grid_.tau_us)),
        numbers_(std::move(numbers)) {
    model_.kept = kept;
    for (const FixedFlow& fixed : instance.fixed_flows) fixed_[fixed.origin].push_back(fixed);
  }

  void build() {
    delivered_ = add_column(1, -1, 1, grid_.num_epochs);
    for (const Origin& origin : origins_) add_origin(origin);
    for (const int first : loads_.orbits().first) {
      const LinkId link{first};
      add_capacity({&link, 1}, topology_.link(link));
    }
    for (const SharedBandwidth& group : topology_.shared_bandwidth()) {
      Link together;
      together.bandwidth_GBps = group.bandwidth_GBps;
      add_capacity(group.links, together);
    }
  }

  // After build().
  int num_columns() const { return model_.num_columns(); }
  std::shared_ptr<const NumbersByTime> by_time() const {
    return std::make_shared<const NumbersByTime>(
        NumbersByTime{numbers_by_time(column_times_), numbers_by_time(row_times_)});
  }
  /// By the numbers of origins.
  BuiltModel take() { return {std::move(model_), decoder()}; }
  BuiltModel take(const NumbersByTime& numbers) {
    if (!numbers_) number_entries(model_, numbers);
    number_by_time(model_, numbers);
    for (Decoded& decoded : decoded_) decoded.flow.column = numbers.column_at(decoded.flow.column);
    return take();
  }

 private:
  /// `time`: of the first epoch that it concerns.
  int add_column(double upper, double cost, double implied_upper, int time) {
    model_.implied_upper.push_back(implied_upper);
    column_times_.push_back(time);
    return model_.add_column(0, upper, cost);
  }
  int add_row(double lower, double upper, int time) {
    row_times_.push_back(time);
    return model_.add_row(lower, upper);
  }
  void add_entry(int row, int column, double value) {
    if (numbers_)
      model_.add_entry(numbers_->row_at(row), numbers_->column_at(column), value);
    else
      model_.add_entry(row, column, value);
  }
  /// All bytes of the origin: an upper bound of every flow and buffer, since data is at one place at a time
  /// and, without cycles of zero duration, crosses a link at most once in an epoch.
  double all_of(const Origin& origin) const {
    return std::accumulate(origin.wanted.begin(), origin.wanted.end(), 0.0) / unit_bytes_;
  }
  /// Capacity of a link at a bandwidth in an epoch.
  double capacity_of(double bandwidth_GBps) const {
    return bandwidth_GBps * kBytesPerUsPerGBps * grid_.tau_us / unit_bytes_;
  }
  /// Capacity of a link in epochs from .. to - 1.
  double capacity_of(const Link& link, int from, int to) const {
    if (link.bandwidth_steps.empty()) return capacity_of(link.bandwidth_GBps) * (to - from);
    return passing_bytes(link, from * grid_.tau_us, to * grid_.tau_us) / unit_bytes_;
  }

  /// Flow of one origin over an orbit of links in epochs from .. to - 1 of an interval.
  struct Flow {
    std::size_t interval;
    int from;
    int to;
    int column;
    int epochs() const { return to - from; }
  };
  using Flows = std::vector<std::vector<Flow>>;  ///< [orbit of links]
  /// The rows of an orbit of nodes.
  struct Balance {
    Stretches stretches = {};
    std::vector<int> row = {};
  };
  struct Decoded {
    GpuId origin;
    LinkId link;
    Flow flow;
  };

  Window window_of(const Origin& origin) const {
    const std::vector<double> length(landing_.begin(), landing_.end());
    // Distances from the origin, and back from all destinations.
    Digraph ahead = topology_.graph();
    Digraph back = reversed(ahead);
    const int root = ahead.num_nodes++;
    back.num_nodes++;
    std::vector<double> ahead_length = length;
    std::vector<double> back_length = length;
    const auto add = [root](Digraph& graph, std::vector<double>& lengths, int node, double epochs) {
      graph.arcs.push_back({root, node});
      lengths.push_back(epochs);
    };
    add(ahead, ahead_length, topology_.node_of(origin.gpu).value,
        epochs_covering(origin.ready_us, grid_.tau_us));
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      if (origin.wanted[n] > 0) add(back, back_length, static_cast<int>(n), 0);
    }
    for (const FixedFlow& fixed : fixed_of(origin)) {
      add(ahead, ahead_length, fixed.dst.value, fixed.from + fixed.delay);
      add(back, back_length, fixed.src.value, grid_.num_epochs - (fixed.to - 1));
    }
    Window window{shortest_paths(ahead, ahead_length, root).distance,
                  shortest_paths(back, back_length, root).distance};
    for (double& last : window.last) last = grid_.num_epochs - last;
    return window;
  }

  std::span<const FixedFlow> fixed_of(const Origin& origin) const {
    const auto found = fixed_.find(origin.gpu);
    return found == fixed_.end() ? std::span<const FixedFlow>() : found->second;
  }

  const Link& member_of(const Origin& origin, int orbit) const {
    return topology_.links()[static_cast<std::size_t>(origin.links.first[static_cast<std::size_t>(orbit)])];
  }
  int landing_of(const Origin& origin, int orbit) const {
    return landing_[static_cast<std::size_t>(origin.links.first[static_cast<std::size_t>(orbit)])];
  }

  void add_origin(const Origin& origin) {
    const Flows flows = add_flows(origin);
    std::vector<Balance> balances = add_balances(origin, flows);
    for (int o = 0; o < origin.links.count(); ++o) {
      for (const Flow& flow : flows[static_cast<std::size_t>(o)]) add_entries(origin, o, flow, balances);
    }
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      for (const Flow& flow : flows[static_cast<std::size_t>(origin.link_orbit[l])])
        decoded_.push_back({origin.gpu, LinkId{l}, flow});
    }
    flows_.push_back(flows);
  }

  Flows add_flows(const Origin& origin) {
    const Window window = window_of(origin);
    const double all = all_of(origin);
    Flows flows(origin.links.first.size());
    for (int o = 0; o < origin.links.count(); ++o) {
      const Link& link = member_of(origin, o);
      if (link.dst == topology_.node_of(origin.gpu)) continue;
      const double first = window.first[link.src.index()];
      const double last = window.last[link.dst.index()] - landing_of(origin, o);
      if (!std::isfinite(first) || !std::isfinite(last)) continue;
      for (std::size_t i = 0; i + 1 < interval_bounds_.size(); ++i) {
        const int from = std::max(interval_bounds_[i], static_cast<int>(first));
        const int to = std::min(interval_bounds_[i + 1], static_cast<int>(last) + 1);
        if (from >= to) continue;
        const double most = (to - from) * std::min(all, capacity_of(greatest_GBps(link)));
        flows[static_cast<std::size_t>(o)].push_back({i, from, to, add_column(kInfinity, 0, most, from)});
      }
    }
    return flows;
  }

  std::vector<Balance> add_balances(const Origin& origin, const Flows& flows) {
    const NodeId source = topology_.node_of(origin.gpu);
    std::vector<Balance> balances(origin.nodes.first.size());
    const auto balance_of = [&](NodeId n) -> Balance& {
      return balances[static_cast<std::size_t>(origin.node_orbit[n.index()])];
    };
    for (int o = 0; o < origin.links.count(); ++o) {
      const Link& link = member_of(origin, o);
      const int landing = landing_of(origin, o);
      for (const Flow& flow : flows[static_cast<std::size_t>(o)]) {
        balance_of(link.dst).stretches.add(flow.from + landing, flow.to + landing);
        balance_of(link.src).stretches.add(flow.from, flow.to);
      }
    }
    for (const FixedFlow& fixed : fixed_of(origin)) {
      balance_of(fixed.dst).stretches.add(fixed.from + fixed.delay, fixed.to + fixed.delay);
      balance_of(fixed.src).stretches.add(fixed.from, fixed.to);
    }
    for (std::size_t v = 0; v < balances.size(); ++v) {
      const NodeId node{origin.nodes.first[v]};
      if (node == source) continue;
      Balance& balance = balances[v];
      balance.stretches.close();
      for (std::size_t i = 0; i < balance.stretches.count(); ++i)
        balance.row.push_back(add_row(0, 0, balance.stretches.begin(i)));
      if (topology_.is_gpu(node)) add_buffers(origin, balance);
    }
    add_demand(origin, balances);
    return balances;
  }

  void add_buffers(const Origin& origin, const Balance& balance) {
    const double all = all_of(origin);
    for (std::size_t i = 0; i + 1 < balance.row.size(); ++i) {
      const int column = add_column(kInfinity, 0, all, balance.stretches.begin(i));
      add_entry(balance.row[i], column, -1);
      add_entry(balance.row[i + 1], column, 1);
    }
  }

  /// The terms of demand and of fixed flows, both proportional to the share delivered.
  void add_demand(const Origin& origin, const std::vector<Balance>& balances) {
    const NodeId source = topology_.node_of(origin.gpu);
    std::map<int, double> entries;
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      if (origin.wanted[n] <= 0) continue;
      const std::vector<int>& row = balances[static_cast<std::size_t>(origin.node_orbit[n])].row;
      if (row.empty()) {
        model_.column_upper[static_cast<std::size_t>(delivered_)] = 0;  // out of reach within K epochs
      } else {
        entries[row.back()] = -origin.wanted[n] / unit_bytes_;
      }
    }
    const auto add = [&](NodeId node, int from, int to, double amount) {
      if (node == source) return;
      const Balance& balance = balances[static_cast<std::size_t>(origin.node_orbit[node.index()])];
      for (std::size_t i = balance.stretches.at(from); i < balance.stretches.at(to); ++i)
        entries[balance.row[i]] += amount / unit_bytes_ * balance.stretches.length(i) / (to - from);
    };
    for (const FixedFlow& fixed : fixed_of(origin)) {
      add(fixed.dst, fixed.from + fixed.delay, fixed.to + fixed.delay, fixed.amount);
      add(fixed.src, fixed.from, fixed.to, -fixed.amount);
    }
    for (const auto& [row, value] : entries) add_entry(row, delivered_, value);
  }

  void add_entries(const Origin& origin, int orbit, const Flow& flow, const std::vector<Balance>& balances) {
    const NodeId source = topology_.node_of(origin.gpu);
    const Link& link = member_of(origin, orbit);
    const int landing = landing_of(origin, orbit);
    std::map<int, double> entries;  // within an orbit of nodes, inflow and outflow may cancel
    const auto add = [&](NodeId node, int from, int to, double links) {
      if (node == source) return;
      const Balance& balance = balances[static_cast<std::size_t>(origin.node_orbit[node.index()])];
      for (std::size_t i = balance.stretches.at(from); i < balance.stretches.at(to); ++i) {
        entries[balance.row[i]] += links * balance.stretches.length(i) / flow.epochs();
      }
    };
    add(link.dst, flow.from + landing, flow.to + landing, origin.links_a_head(orbit, link));
    add(link.src, flow.from, flow.to, -origin.links_a_tail(orbit, link));
    for (const auto& [row, value] : entries) {
      if (std::abs(value) > kRounding) add_entry(row, flow.column, value);
    }
  }

  /// `of`: the link, or one of the bandwidth that the links share.
  void add_capacity(std::span<const LinkId> links, const Link& of) {
    const std::vector<LinkLoads::Share> shares = loads_.on(links);
    const auto flows_of = [&](const LinkLoads::Share& share) -> const std::vector<Flow>& {
      return flows_[share.origin][static_cast<std::size_t>(share.link_orbit)];
    };
    Stretches stretches;
    for (const LinkLoads::Share& share : shares) {
      for (const Flow& flow : flows_of(share)) stretches.add(flow.from, flow.to);
    }
    // A flow is as large in each epoch of an interval, so that epochs of another bandwidth count by
    // themselves.
    for (const BandwidthStep& step : of.bandwidth_steps) {
      const int epoch = static_cast<int>(std::min(step.from_us / grid_.tau_us, grid_.num_epochs - 1.0));
      stretches.add_within(epoch, epoch + 1);
    }
    stretches.close();
    std::vector<int> row;
    for (std::size_t i = 0; i < stretches.count(); ++i) {
      const int from = stretches.begin(i);
      row.push_back(add_row(-kInfinity, capacity_of(of, from, from + stretches.length(i)), from));
    }
    for (const LinkLoads::Share& share : shares) {
      for (const Flow& flow : flows_of(share)) {
        for (std::size_t i = stretches.at(flow.from); i < stretches.at(flow.to); ++i)
          add_entry(row[i], flow.column, share.weight * stretches.length(i) / flow.epochs());
      }
    }
  }

  std::function<FlowField(const Solution&)> decoder() {
    return [decoded = std::make_shared<const std::vector<Decoded>>(std::move(decoded_)), unit = unit_bytes_,
            landing = landing_, bounds = interval_bounds_, tau_us = grid_.tau_us](const Solution& solution) {
      FlowField field;
      for (const auto& [origin, link, flow] : *decoded) {
        const double amount = solution.x[static_cast<std::size_t>(flow.column)];
        if (amount <= kRounding) continue;
        const int lands = flow.from + landing[link.index()];
        const auto next = std::upper_bound(bounds.begin(), bounds.end(), lands);
        field.entries.push_back(
            {origin.value, link, bounds[flow.interval], amount * unit, *std::prev(next), flow.from, flow.to});
        field.finish_us = std::max(field.finish_us, (flow.to - 1 + landing[link.index()]) * tau_us);
      }
      return field;
    };
  }

  const Topology& topology_;
  const EpochGrid& grid_;
  std::vector<int> interval_bounds_;
  double unit_bytes_;
  std::vector<Origin> origins_;
  LinkLoads loads_;
  std::vector<int> landing_;
  std::map<GpuId, std::vector<FixedFlow>> fixed_;
  LinearModel model_;
  std::shared_ptr<const NumbersByTime> numbers_;
  std::vector<int> column_times_, row_times_;
  int delivered_ = 0;
  std::vector<Flows> flows_;      ///< per origin
  std::vector<Decoded> decoded_;  ///< of representatives, over all links
};

}  // namespace

BuiltModel time_expanded_flow(const Instance& instance) {
  if (!instance.grid || instance.grid->num_epochs < 1) {
    throw Error(ExitCode::internal, "a time-expanded flow needs a grid with its number of epochs");
  }
  const bool in_shares = instance.share && instance.share->parts > 1;
  FlowBuilder first(instance, in_shares ? ColumnRange{0, 0} : ColumnRange{});
  first.build();
  if (!instance.share) return first.take();
  const auto numbers = first.by_time();
  if (!in_shares) return first.take(*numbers);
  // The numbers of all columns must be known before the entries of a share of them are stored.
  FlowBuilder share(instance, instance.share->of(first.num_columns()), numbers);
  share.build();
  return share.take(*numbers);
}

}  // namespace rondo
