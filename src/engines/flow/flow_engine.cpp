#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "constant_rates.hpp"
#include "detours.hpp"
#include "flow_policies.hpp"
#include "orbit_problem.hpp"
#include "policy_table.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/rate_divisors.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/flows/rounding.hpp"
#include "rondo/flows/route_table.hpp"
#include "rondo/flows/steady_flow.hpp"
#include "route_justification.hpp"
#include "route_scheduling.hpp"
#include "slots.hpp"

namespace rondo {
namespace {

/// From so many chunks on local search makes few tries of a schedule, or none; and the least part of the
/// finish time that list scheduling has to have lost beyond the busiest link's load.
constexpr std::size_t kManyChunks = 50'000;
constexpr double kWorthJustifying = 1e-4;

/// Where there is a free group, whole problems of more chunks than that are left out unless asked for.
constexpr std::size_t kMaxWholeChunks = 20'000;

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

/// Beyond it, finer rates are of little use.
constexpr int kMostDivisor = 16;
/// Over so many links at once, transfers keep others of them idle.
constexpr std::size_t kLongHop = 4;

int most_divisor(const EngineOptions& options) {
  return options.concurrency == kAnyConcurrency ? kMostDivisor : std::min(options.concurrency, kMostDivisor);
}

int divisor_of(FlowRates rates, std::span<const Hop> hops, const EngineOptions& options) {
  if (rates != FlowRates::fitting && rates != FlowRates::fine) return 1;
  const int fitting = rate_divisors(hops, most_divisor(options)).back();
  if (rates == FlowRates::fitting) return fitting;
  return most_divisor(options) / fitting * fitting;
}

/// Whether some link carries hops of different rates, as behind damaged ones: what a slow one leaves of the
/// link is of use to other slow ones only.
bool shares_unevenly(std::span<const Hop> hops, const Topology& topology) {
  std::vector<double> share(topology.num_links(), 0);
  for (const Hop& hop : hops) {
    for (const HopLink& part : hop.links) {
      double& known = share[part.link.index()];
      if (known > 0 && std::abs(known - part.share) > kWholeLink) return true;
      known = part.share;
    }
  }
  return false;
}

/// Whether all links of a hop can flow at one rate from the beginning to the end.
bool flows_at_constant_rates(const Topology& topology) {
  return !topology.has_message_costs() && !topology.has_bandwidth_steps() &&
         std::ranges::none_of(topology.nodes(), &Node::stores);
}

PolicyFilter offers(const Instance& instance, const EngineOptions& options) {
  const std::vector<Hop> hops = HopTable(*instance.topology).hops();
  const int fitting = divisor_of(FlowRates::fitting, hops, options);
  const bool are_long =
      std::ranges::any_of(hops, [](const Hop& hop) { return hop.links.size() >= kLongHop; });
  const bool is_finer = divisor_of(FlowRates::fine, hops, options) > fitting && are_long;
  const bool is_constant =
      (options.concurrency == kAnyConcurrency || (options.concurrency > 1 && are_long)) &&
      flows_at_constant_rates(*instance.topology);
  const bool is_uneven = shares_unevenly(hops, *instance.topology);
  return [=](const std::string& policy) {
    switch (find_policy(flow_policy_table(), policy, "flow").rates) {
      case FlowRates::alone:
        return is_uneven;
      case FlowRates::constant:
        return is_constant;
      case FlowRates::fitting:
        return fitting > 1;
      case FlowRates::fine:
        return is_finer;
      case FlowRates::whole:
        break;
    }
    return true;
  };
}

RouteTable slowed(const RouteTable& table, int divisor) {
  RouteTable result{{}, table.of_contribution};
  for (const Hop& hop : table.hops) result.hops.push_back(slowed(hop, divisor));
  return result;
}

/// A transfer takes all of a link, whatever its rate.
RouteTable alone(const RouteTable& table) {
  RouteTable result = table;
  for (Hop& hop : result.hops) {
    for (HopLink& part : hop.links) part.share = 1;
  }
  return result;
}

/// In place of a divisor of rates.
constexpr int kAlone = 0;

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
    if (policy.rates == FlowRates::constant && !may_be_constant(call)) return std::nullopt;
    if (policy.by_orbits) return realise_by_orbits(demand, policy, call);
    if (part_ && demand.num_chunks() > kMaxWholeChunks && !call.policy_is_asked) return std::nullopt;
    auto& tables = tables_[is_in_slots(policy, call)];
    if (tables.empty()) tables[1] = routes(*topology_, demand_, policy, call);
    const bool is_alone = policy.rates == FlowRates::alone;
    const int divisor = is_alone ? kAlone : divisor_of(policy.rates, tables.at(1).hops, call);
    if (!tables.contains(divisor))
      tables[divisor] = is_alone ? alone(tables.at(1)) : slowed(tables.at(1), divisor);
    const RouteTable& table = tables.at(divisor);
    const Deadline deadline(call.limits);
    const Beginning beginning{&beginning_of(policy), demand.num_chunks(), call.seed, call.concurrency};
    const bool is_kept = rounded_ && rounded_->first == beginning;
    const Deadline rounding_ends = deadline.after(kShareOfRounding);
    RoutedChunks routed =
        is_kept ? std::move(rounded_->second)
                : round_to_chunks(*topology_, demand, table, start(policy, call), call.seed, rounding_ends);
    rounded_.reset();
    // Others that begin alike come next, if they come.
    const bool is_for_others =
        !is_kept && !call.policy_is_asked && others_begin_alike(policy) && !rounding_ends.is_over();
    if (policy.rates == FlowRates::constant) {
      auto own = at_constant_rates(*topology_, table.hops, table.hops, demand, routed, call, deadline);
      if (!own) return std::nullopt;
      return Realised{std::move(*own), routed.greatest_load_us};
    }
    auto starts = start_routes(*topology_, table.hops, demand, routed,
                               {policy.order, call.seed, call.concurrency}, deadline);
    if (!starts) return std::nullopt;
    const std::vector<Hop>& hops = is_alone ? tables.at(1).hops : table.hops;
    const double worthwhile_us = (1 + kWorthJustifying) * routed.greatest_load_us;
    if (demand.num_chunks() > kManyChunks && starts->finish_us > worthwhile_us)
      *starts = justified(*std::move(starts), *topology_, hops, demand, routed, call.concurrency, deadline);
    Realised realised{schedule_of(*starts, *topology_, hops, demand, routed), routed.greatest_load_us};
    if (is_for_others) rounded_ = {beginning, std::move(routed)};
    return realised;
  }

  std::size_t num_automorphisms() const { return part_ ? part_->group.order() : 1; }

 private:
  /// What decides the rounding: first policy that begins alike, chunks, seed, concurrency.
  using Beginning = std::tuple<const FlowPolicy*, std::size_t, std::uint64_t, int>;

  /// Throws where the policy was asked for and is not possible.
  bool may_be_constant(const EngineOptions& call) const {
    if (flows_at_constant_rates(*topology_)) return true;
    if (!call.policy_is_asked) return false;
    throw Error(ExitCode::unavailable,
                "policies of constant rates are for links without message_us and bandwidth_steps and for "
                "cut-through switches; use another policy");
  }

  /// The chunks go over the links of `real`; `hops` are those that meet on `topology`.
  static std::optional<Schedule> at_constant_rates(const Topology& topology, const std::vector<Hop>& hops,
                                                   const std::vector<Hop>& real, const Demand& demand,
                                                   const RoutedChunks& routed, const EngineOptions& call,
                                                   const Deadline& deadline) {
    if (call.concurrency == kAnyConcurrency) return rondo::at_constant_rates(topology, real, demand, routed);
    const bool any_relays = std::ranges::any_of(
        routed.route_of_chunk, [&](int r) { return routed.routes[index(r)].hops.size() > 1; });
    if (any_relays) {
      if (!call.policy_is_asked) return std::nullopt;
      throw Error(
          ExitCode::unavailable,
          fmt::format("policies of constant rates send what GPUs relay all at once, and --concurrency "
                      "is {}; give --concurrency 0 or use another policy",
                      call.concurrency));
    }
    const auto slots = deal_to_slots(topology, hops, demand, routed, call.concurrency, call.seed, deadline);
    if (!slots) return std::nullopt;
    return in_slots(topology, hops, real, demand, routed, *slots);
  }

  static bool is_in_slots(const FlowPolicy& policy, const EngineOptions& call) {
    return policy.rates == FlowRates::constant && call.concurrency != kAnyConcurrency;
  }
  /// Those of a model may go around over links that have time to spare, which a deal to slots needs.
  RouteTable routes(const Topology& topology, const Demand& demand, const FlowPolicy& policy,
                    const EngineOptions& call) const {
    return is_in_slots(policy, call) ? routes_with_detours(topology, demand)
                                     : steady_routes(topology, demand, *steady_);
  }
  RoutingStart start(const FlowPolicy& policy, const EngineOptions& call) const {
    return steady_->field && !is_in_slots(policy, call) ? policy.start : RoutingStart::shortest;
  }

  struct OrbitTables {
    std::optional<std::optional<OrbitRoutes>> whole = {};
    std::map<int, OrbitRoutes> slowed = {};  ///< by divisor of the rates
  };

  std::optional<Realised> realise_by_orbits(const Demand& demand, const FlowPolicy& policy,
                                            const EngineOptions& call) {
    const bool shares = is_in_slots(policy, call);
    OrbitTables& tables = by_orbits_[shares];
    if (part_ && !tables.whole) {
      tables.whole = orbit_routes(*part_, routes(*topology_, part_->demand, policy, call),
                                  shares ? OrbitMeetings::shared : OrbitMeetings::none);
    }
    if (!part_ || !*tables.whole) {
      if (!call.policy_is_asked) return std::nullopt;
      throw Error(
          ExitCode::unavailable,
          fmt::format("policy {} copies the schedule of each orbit's representative, but no automorphisms of "
                      "this fabric and demand were found that keep all copies apart; use another policy",
                      policy.name));
    }
    const Demand part = part_->demand.with_chunks(demand.chunks_per_contribution());
    const OrbitRoutes& whole = **tables.whole;
    const int divisor = divisor_of(policy.rates, whole.real.hops, call);
    if (!tables.slowed.contains(divisor))
      tables.slowed[divisor] = {slowed(whole.real, divisor), slowed(whole.representatives, divisor)};
    const OrbitRoutes& routes = tables.slowed.at(divisor);
    const Deadline deadline(call.limits);
    const RoutedChunks routed =
        round_to_chunks(part_->topology, part, routes.representatives, start(policy, call), call.seed,
                        deadline.after(kShareOfRounding));
    if (policy.rates == FlowRates::constant) {
      const auto own = at_constant_rates(part_->topology, routes.representatives.hops, routes.real.hops, part,
                                         routed, call, deadline);
      if (!own) return std::nullopt;
      return Realised{images_of(*own, *part_, part.chunks_per_contribution()), routed.greatest_load_us};
    }
    const auto starts = start_routes(part_->topology, routes.representatives.hops, part,
                                     merge_hops(routes.representatives, routed),
                                     {policy.order, call.seed, call.concurrency}, deadline);
    if (!starts) return std::nullopt;
    const Schedule own = schedule_of(*starts, *topology_, routes.real.hops, part, routed);
    return Realised{images_of(own, *part_, part.chunks_per_contribution()), routed.greatest_load_us};
  }

  std::shared_ptr<const Topology> topology_;
  Demand demand_;
  std::shared_ptr<const SteadyFlow> steady_;
  std::map<bool, std::map<int, RouteTable>>
      tables_;  ///< by whether in slots, and divisor of the rates or kAlone
  /// Of the last schedule, for the next one.
  std::optional<std::pair<Beginning, RoutedChunks>> rounded_;
  std::optional<OrbitProblem> part_;
  std::map<bool, OrbitTables> by_orbits_;  ///< by whether in slots
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
          .offers = offers,
          // Schedules by orbits are decided for the representatives and copied.
          .work =
              [](const Demand& demand, const std::string& policy) {
                return demand.num_deliveries() * (policy.starts_with("orbits") ? 0.25 : 1);
              },
          .begins_with =
              [](const std::string& policy) {
                return beginning_of(find_policy(flow_policy_table(), policy, "flow")).name;
              },
          .traits = traits,
          .prepare = prepare_flow};
}

}  // namespace rondo
