#include <algorithm>
#include <memory>

#include "origins.hpp"
#include "rondo/core/units.hpp"
#include "rondo/formulations/formulations.hpp"

/// minimise    T + w sum_{s,l} c_l f_{s,l}
/// subject to  sum_{l into v} f_{s,l} - sum_{l out of v} f_{s,l} = bytes(s, v)   for every origin s, node v
/// != s
///             sum_s f_{s,l} <= bandwidth_l T                                     for every link l
///             sum_{l in group} sum_s f_{s,l} <= bandwidth_group T                for every shared bandwidth
///             f >= 0
///
/// c_l is the time of one contribution on link l. Its weight w is so small that it only chooses among the
/// flows of least T: those on short ways, which small sizes need.
///
/// Flows are counted in contributions of average bytes and T in the time of one of them on the fastest link,
/// so that all coefficients are at most 1.
namespace rondo {
namespace {

/// Objective of one unit of T, and of every contribution's detour of one slowest link.
constexpr double kTimeCost = 1e3;
constexpr double kDetourCost = 1;

struct Units {
  double bytes = 0;
  double bandwidth_GBps = 0;
  double time_us() const { return transmission_us(bytes, bandwidth_GBps); }
};

Units units_of(const Topology& topology, const Demand& demand) {
  Units units;
  units.bytes = mean_contribution_bytes(demand);
  for (const Link& link : topology.links()) {
    units.bandwidth_GBps = std::max(units.bandwidth_GBps, link.bandwidth_GBps);
  }
  return units;
}

/// The columns: T, then one for every origin that sends and every link that does not lead back into it.
struct Layout {
  int time = 0;
  std::vector<Origin> origins;
  std::vector<std::vector<int>> flow;  ///< [origin's position][link], -1 where there is none
  int first_capacity_row = 0;
};

void add_columns(const Topology& topology, const Demand& demand, const Units& units, LinearModel& model,
                 Layout& layout) {
  std::vector<double> link_time;
  for (const Link& link : topology.links()) {
    link_time.push_back(link.latency_us + transmission_us(units.bytes, link.bandwidth_GBps));
  }
  const double longest = *std::max_element(link_time.begin(), link_time.end());
  const double weight = kDetourCost / (longest * static_cast<double>(demand.contributions().size()));

  layout.time = model.add_column(0, kInfinity, kTimeCost);
  for (const Origin& origin : layout.origins) {
    std::vector<int>& flow = layout.flow.emplace_back(topology.num_links(), -1);
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      if (topology.links()[l].dst == topology.node_of(origin.gpu)) continue;
      flow[l] = model.add_column(0, kInfinity, weight * link_time[l]);
    }
  }
}

void add_conservation(const Topology& topology, const Units& units, LinearModel& model,
                      const Layout& layout) {
  for (std::size_t i = 0; i < layout.origins.size(); ++i) {
    for (std::size_t n = 0; n < topology.num_nodes(); ++n) {
      const NodeId v{n};
      if (v == topology.node_of(layout.origins[i].gpu)) continue;
      const double wanted = layout.origins[i].wanted[n] / units.bytes;
      const int row = model.add_row(wanted, wanted);
      for (const LinkId l : topology.in_links(v)) {
        if (layout.flow[i][l.index()] >= 0) model.add_entry(row, layout.flow[i][l.index()], 1);
      }
      for (const LinkId l : topology.out_links(v)) {
        if (layout.flow[i][l.index()] >= 0) model.add_entry(row, layout.flow[i][l.index()], -1);
      }
    }
  }
}

void add_capacity(std::span<const LinkId> links, double bandwidth, LinearModel& model, const Layout& layout) {
  const int row = model.add_row(-kInfinity, 0);
  model.add_entry(row, layout.time, -bandwidth);
  for (const auto& flow : layout.flow) {
    for (const LinkId l : links) {
      if (flow[l.index()] >= 0) model.add_entry(row, flow[l.index()], 1);
    }
  }
}

FlowField decode(const Solution& solution, const Layout& layout, const Units& units, std::size_t num_links) {
  FlowField field;
  const auto value = [&](int column) { return solution.x[static_cast<std::size_t>(column)]; };
  field.finish_us = value(layout.time) * units.time_us();
  for (std::size_t i = 0; i < layout.origins.size(); ++i) {
    for (std::size_t l = 0; l < num_links; ++l) {
      if (layout.flow[i][l] < 0 || value(layout.flow[i][l]) <= 0) continue;
      field.entries.push_back(
          {layout.origins[i].gpu.value, LinkId{l}, 0, value(layout.flow[i][l]) * units.bytes});
    }
  }
  if (solution.row_dual.empty()) return field;
  const double price_unit = units.time_us() / (units.bytes * kTimeCost);
  for (std::size_t l = 0; l < num_links; ++l) {
    const double dual = solution.row_dual[static_cast<std::size_t>(layout.first_capacity_row) + l];
    field.link_price.push_back(std::max(0.0, -dual) * price_unit);
  }
  return field;
}

}  // namespace

BuiltModel steady_state_flow(const Instance& instance) {
  const Topology& topology = *instance.topology;
  const Demand& demand = instance.demand;
  const Units units = units_of(topology, demand);
  BuiltModel built;
  Layout layout;
  layout.origins = origins_of(topology, demand, "a steady-state flow");
  add_columns(topology, demand, units, built.model, layout);
  add_conservation(topology, units, built.model, layout);
  layout.first_capacity_row = built.model.num_rows();
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const LinkId link{l};
    add_capacity({&link, 1}, topology.links()[l].bandwidth_GBps / units.bandwidth_GBps, built.model, layout);
  }
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    add_capacity(group.links, group.bandwidth_GBps / units.bandwidth_GBps, built.model, layout);
  }
  built.decode = [layout = std::make_shared<const Layout>(std::move(layout)), units,
                  links = topology.num_links()](const Solution& solution) {
    return decode(solution, *layout, units, links);
  };
  return built;
}

}  // namespace rondo
