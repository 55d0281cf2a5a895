#include <algorithm>
#include <memory>

#include "origins.hpp"
#include "rondo/core/units.hpp"
#include "rondo/formulations/formulations.hpp"

// clang-format off
/// minimise    T + w sum_{s,l} c_l f_{s,l}
/// subject to  sum_{l into v} f_{s,l} - sum_{l out of v} f_{s,l} = bytes(s, v)   for every origin s, node v != s
///             sum_s f_{s,l} <= bandwidth_l T                                    for every link l
///             sum_{l in group} sum_s f_{s,l} <= bandwidth_group T               for every shared bandwidth
///             f >= 0
// clang-format on
///
/// c_l is the time of one contribution on link l. Its weight w is so small that it only chooses among the
/// flows of least T: short paths, which small sizes need.
///
/// Where flows are equal by symmetry, one column represents all of them: f_{s,O} for a representative s of an
/// orbit of origins and an orbit O of links under the stabiliser of s. There is one row for each orbit of
/// nodes (under the same stabiliser) and of links (under the whole group, see LinkLoads).
///
/// Flows are counted in contributions of average bytes and T in the time of one of them on the fastest link,
/// so that all coefficients are at most 1.
namespace rondo {
namespace {

/// Objective coefficients of one unit of T, and of a detour of every contribution over one slowest link.
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

/// The columns: T, then one for every origin that sends and every orbit of links that do not enter it.
struct Layout {
  int time = 0;
  std::vector<Origin> origins;
  std::vector<std::vector<int>> flow;  ///< [origin's position][orbit of links], -1 where there is none
  std::vector<int> capacity_row;       ///< per link
  std::vector<int> links_of_row;       ///< per link: the links that its row represents

  int column(std::size_t origin, std::size_t link) const {
    return flow[origin][static_cast<std::size_t>(origins[origin].link_orbit[link])];
  }
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
    std::vector<int>& flow = layout.flow.emplace_back(origin.links.count(), -1);
    for (std::size_t o = 0; o < flow.size(); ++o) {
      const auto l = static_cast<std::size_t>(origin.links.first[o]);
      if (topology.links()[l].dst == topology.node_of(origin.gpu)) continue;
      flow[o] = model.add_column(0, kInfinity, weight * link_time[l] * origin.size * origin.links.size[o]);
    }
  }
}

void add_conservation(const Topology& topology, const Units& units, LinearModel& model,
                      const Layout& layout) {
  for (std::size_t i = 0; i < layout.origins.size(); ++i) {
    const Origin& origin = layout.origins[i];
    const NodeId source = topology.node_of(origin.gpu);
    std::vector<int> row;
    for (const int n : origin.nodes.first) {
      const double wanted = origin.wanted[static_cast<std::size_t>(n)] / units.bytes;
      row.push_back(n == source.value ? -1 : model.add_row(wanted, wanted));
    }
    const auto row_of = [&](NodeId n) { return row[static_cast<std::size_t>(origin.node_orbit[n.index()])]; };
    for (int o = 0; o < origin.links.count(); ++o) {
      const int column = layout.flow[i][static_cast<std::size_t>(o)];
      if (column < 0) continue;
      const Link& link =
          topology.links()[static_cast<std::size_t>(origin.links.first[static_cast<std::size_t>(o)])];
      const int head = row_of(link.dst);
      const int tail = row_of(link.src);
      const double in = origin.links_a_head(o, link);
      const double out = origin.links_a_tail(o, link);
      if (head == tail) continue;  // within an orbit of nodes, inflow and outflow cancel
      model.add_entry(head, column, in);
      if (tail >= 0) model.add_entry(tail, column, -out);
    }
  }
}

int add_capacity(std::span<const LinkId> links, double bandwidth, const LinkLoads& loads, LinearModel& model,
                 const Layout& layout) {
  const int row = model.add_row(-kInfinity, 0);
  model.add_entry(row, layout.time, -bandwidth);
  for (const LinkLoads::Share& share : loads.on(links)) {
    const int column = layout.flow[share.origin][static_cast<std::size_t>(share.link_orbit)];
    if (column >= 0) model.add_entry(row, column, share.weight);
  }
  return row;
}

void add_capacities(const Topology& topology, const Units& units, const LinkLoads& loads, LinearModel& model,
                    Layout& layout) {
  std::vector<int> row;
  for (const int first : loads.orbits().first) {
    const LinkId link{first};
    row.push_back(add_capacity({&link, 1}, topology.link(link).bandwidth_GBps / units.bandwidth_GBps, loads,
                               model, layout));
  }
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const auto orbit = static_cast<std::size_t>(loads.orbit_of(l));
    layout.capacity_row.push_back(row[orbit]);
    layout.links_of_row.push_back(loads.orbits().size[orbit]);
  }
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    add_capacity(group.links, group.bandwidth_GBps / units.bandwidth_GBps, loads, model, layout);
  }
}

FlowField decode(const Solution& solution, const Layout& layout, const Units& units) {
  FlowField field;
  const auto value = [&](int column) { return solution.x[static_cast<std::size_t>(column)]; };
  const std::size_t num_links = layout.capacity_row.size();
  field.finish_us = value(layout.time) * units.time_us();
  for (std::size_t i = 0; i < layout.origins.size(); ++i) {
    for (std::size_t l = 0; l < num_links; ++l) {
      const int column = layout.column(i, l);
      if (column < 0 || value(column) <= 0) continue;
      field.entries.push_back({layout.origins[i].gpu.value, LinkId{l}, 0, value(column) * units.bytes});
    }
  }
  if (solution.row_dual.empty()) return field;
  const double price_unit = units.time_us() / (units.bytes * kTimeCost);
  for (std::size_t l = 0; l < num_links; ++l) {
    const double dual = solution.row_dual[static_cast<std::size_t>(layout.capacity_row[l])];
    field.link_price.push_back(std::max(0.0, -dual) * price_unit / layout.links_of_row[l]);
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
  layout.origins = origins_of(instance, "a steady-state flow");
  add_columns(topology, demand, units, built.model, layout);
  add_conservation(topology, units, built.model, layout);
  add_capacities(topology, units, LinkLoads(instance, layout.origins), built.model, layout);
  built.decode = [layout = std::make_shared<const Layout>(std::move(layout)),
                  units](const Solution& solution) { return decode(solution, *layout, units); };
  return built;
}

}  // namespace rondo
