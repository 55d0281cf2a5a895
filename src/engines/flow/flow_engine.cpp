#include <fmt/format.h>

#include <memory>

#include "orbit_problem.hpp"
#include "policy_table.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/flows/route_table.hpp"
#include "rondo/flows/steady_flow.hpp"
#include "route_scheduling.hpp"

namespace rondo {
namespace {

struct FlowPolicy {
  std::string name;
  RoutingStart start;
  RouteOrder order;
  bool by_orbits = false;  ///< decided for the representatives of orbits, see orbit_problem.hpp
};

/// Where there is a free group, whole problems of more chunks than that are left out unless asked for.
constexpr std::size_t kMaxWholeChunks = 20'000;

/// The first one is the default.
const std::vector<FlowPolicy>& flow_policy_table() {
  static const std::vector<FlowPolicy> table{
      {"bottleneck", RoutingStart::model, RouteOrder::bottleneck},
      {"load", RoutingStart::model, RouteOrder::load},
      {"shortest", RoutingStart::shortest, RouteOrder::bottleneck},
      {"shortest-load", RoutingStart::shortest, RouteOrder::load},
      {"orbits", RoutingStart::model, RouteOrder::bottleneck, true},
      {"orbits-load", RoutingStart::model, RouteOrder::load, true},
  };
  return table;
}

/// The routes of the steady-state flow; none where there is no such flow.
RouteTable steady_routes(const Topology& topology, const Demand& demand, const SteadyFlow& steady) {
  RouteBuilder builder(topology, demand);
  if (!steady.field) return builder.build();
  for (const auto& [origin, contributions] : contributions_by_origin(demand)) {
    std::vector<double> flow(topology.num_links(), 0.0);
    for (const FlowField::Entry& entry : entries_of(topology, steady.symmetry, *steady.field, origin))
      flow[entry.link.index()] += entry.amount;
    std::vector<Sink> sinks;
    for (const std::size_t i : contributions) {
      const Contribution& c = demand.contributions()[i];
      sinks.push_back({topology.node_of(c.destinations.front()).value, c.bytes});
    }
    const auto paths = decompose_flow(topology.graph(), flow, topology.node_of(origin).value, sinks);
    for (std::size_t k = 0; k < sinks.size(); ++k) {
      for (const FlowPath& path : paths[k]) {
        std::vector<LinkId> links;
        for (const int a : path.arcs) links.push_back(LinkId{a});
        builder.add(contributions[k], links, path.amount);
      }
    }
  }
  return builder.build();
}

struct Realised {
  Schedule schedule;
  double rounded_us;  ///< see RoutedChunks::greatest_load_us
};

/// Makes what schedules need when they first need it.
class FlowScheduler {
 public:
  FlowScheduler(const Instance& instance, std::shared_ptr<const SteadyFlow> steady, bool symmetry)
      : topology_(instance.topology), demand_(instance.demand), steady_(std::move(steady)) {
    if (!symmetry || steady_->symmetry.is_trivial()) return;
    FreeGroup group = find_free_group(*topology_, steady_->pattern);
    if (group.order() > 1) part_ = orbit_problem(*topology_, demand_, std::move(group));
  }

  /// Nothing where the policy is not applicable to the problem or another one solves it better, and once
  /// `call` is interrupted.
  std::optional<Realised> realise(const Demand& demand, const FlowPolicy& policy, const EngineOptions& call) {
    if (policy.by_orbits) return realise_by_orbits(demand, policy, call);
    if (part_ && demand.num_chunks() > kMaxWholeChunks && !call.policy_is_asked) return std::nullopt;
    if (!table_) table_ = steady_routes(*topology_, demand_, *steady_);
    const Deadline deadline(call.limits);
    const RoutedChunks routed = round_to_chunks(*topology_, demand, *table_, start(policy), call.seed,
                                                deadline.after(kShareOfRounding));
    auto schedule =
        schedule_routes(*topology_, table_->hops, demand, routed, policy.order, call.seed, deadline);
    if (!schedule) return std::nullopt;
    return Realised{std::move(*schedule), routed.greatest_load_us};
  }

  std::size_t num_automorphisms() const { return part_ ? part_->group.order() : 1; }

 private:
  RoutingStart start(const FlowPolicy& policy) const {
    return steady_->field ? policy.start : RoutingStart::shortest;
  }

  std::optional<Realised> realise_by_orbits(const Demand& demand, const FlowPolicy& policy,
                                            const EngineOptions& call) {
    if (part_ && !routes_) routes_ = orbit_routes(*part_, steady_routes(*topology_, part_->demand, *steady_));
    if (!part_ || !*routes_) {
      if (!call.policy_is_asked) return std::nullopt;
      throw Error(
          ExitCode::unavailable,
          fmt::format("policy {} copies the schedule of each orbit's representative, but no automorphisms of "
                      "this fabric and demand were found that keep all copies apart; use another policy",
                      policy.name));
    }
    const Demand part = part_->demand.with_chunks(demand.chunks_per_contribution());
    const OrbitRoutes& routes = **routes_;
    const Deadline deadline(call.limits);
    const RoutedChunks routed = round_to_chunks(part_->topology, part, routes.representatives, start(policy),
                                                call.seed, deadline.after(kShareOfRounding));
    const auto starts =
        start_routes(part_->topology, routes.representatives.hops, part,
                     merge_hops(routes.representatives, routed), policy.order, call.seed, deadline);
    if (!starts) return std::nullopt;
    return Realised{images_of(*starts, *part_, *topology_, demand, part, routes.real.hops, routed),
                    routed.greatest_load_us};
  }

  std::shared_ptr<const Topology> topology_;
  Demand demand_;
  std::shared_ptr<const SteadyFlow> steady_;
  std::optional<RouteTable> table_;
  std::optional<OrbitProblem> part_;
  std::optional<std::optional<OrbitRoutes>> routes_;
};

}  // namespace

const std::vector<std::string>& flow_policies() {
  static const std::vector<std::string> names = names_of(flow_policy_table());
  return names;
}

PreparedEngine prepare_flow(const Instance& instance, const EngineOptions& options, const Toolbox& tools) {
  if (!instance.demand.is_unicast()) {
    throw Error(
        ExitCode::unavailable,
        "engine flow carries data with one destination each (AllToAll, Scatter, Gather); use engine list for "
        "multicast demand");
  }
  std::shared_ptr<const SteadyFlow> steady = options.steady;
  if (!steady || tools.solve_in_parts || !instance.topology->shared_bandwidth().empty()) {
    steady = std::make_shared<const SteadyFlow>(
        solve_steady_flow(instance, tools, options.symmetry, options.limits));
  }
  EngineResult notes;
  notes.metrics = steady->metrics;
  notes.metrics["columns"] = static_cast<double>(steady->columns);
  notes.metrics["columns_without_symmetry"] = static_cast<double>(steady->all_columns);
  if (steady->field) {
    notes.metrics["steady_us"] = steady->field->finish_us;
  } else {
    notes.remarks.push_back(fmt::format("engine flow balanced shortest routes: {}", steady->why_not));
  }
  const auto scheduler = std::make_shared<FlowScheduler>(instance, steady, options.symmetry);
  notes.metrics["automorphisms"] = static_cast<double>(scheduler->num_automorphisms());
  return [scheduler, notes](const Demand& demand, const EngineOptions& call) {
    EngineResult result = notes;
    auto realised = scheduler->realise(demand, find_policy(flow_policy_table(), call.policy, "flow"), call);
    if (!realised) return result;
    result.metrics["rounded_us"] = realised->rounded_us;
    result.metrics["realised_us"] = realised->schedule.finish_us;
    result.schedule = std::move(realised->schedule);
    return result;
  };
}

EngineInfo flow_engine() {
  EngineTraits traits = kContinuousTime;
  traits.in_parts = true;
  return {.name = "flow",
          .help = "steady-state flow, rounded to equal chunks and list-scheduled; AllToAll, Scatter, Gather",
          .policies = flow_policies(),
          .applicable = [](const Instance& instance,
                           const EngineOptions&) { return instance.demand.is_unicast(); },
          // Schedules by orbits are decided for the representatives and copied.
          .work =
              [](const Demand& demand, const std::string& policy) {
                return demand.num_deliveries() * (policy.starts_with("orbits") ? 0.25 : 1);
              },
          .traits = traits,
          .prepare = prepare_flow};
}

}  // namespace rondo
