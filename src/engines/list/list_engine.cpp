#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "along_trees.hpp"
#include "list_scheduler.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/rate_divisors.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/plain_allgather.hpp"

namespace rondo {
namespace {

constexpr std::size_t kFewContributions = 300;
/// Where messages cost, what goes together counts for more than the best routes.
constexpr std::size_t kFewContributionsJoined = 3000;
constexpr std::size_t kFewGpus = 64;
constexpr double kUsualHops = 16;  ///< into a GPU

bool may_join(const Instance& instance, const EngineOptions& options) {
  return options.join && instance.topology->has_message_costs() &&
         !instance.topology->has_bandwidth_steps() && !instance.topology->limits_relay_memory();
}

}  // namespace

int fitting_divisor(const HopTable& hops, const EngineOptions& options) {
  const int most = options.concurrency == kAnyConcurrency ? kDefaultConcurrency : options.concurrency;
  return rate_divisors(hops.hops(), most).back();
}

PreparedEngine prepare_list(const Instance& instance, const EngineOptions&, const Toolbox&) {
  const auto topology = instance.topology;
  const auto whole = std::make_shared<const HopTable>(*topology);
  const auto fitting = std::make_shared<std::optional<HopTable>>();
  return [topology, whole, fitting](const Demand& demand, const EngineOptions& options) {
    ListRules rules = list_rules(options.policy, options.seed);
    rules.concurrency = options.concurrency;
    if ((rules.fitting_rates || rules.joined) && topology->has_bandwidth_steps()) {
      throw Error(ExitCode::unavailable,
                  fmt::format("policy {} is for links whose bandwidth never changes, and '{}' has "
                              "bandwidth_steps; choose another one",
                              options.policy, topology->name()));
    }
    if (rules.joined && topology->limits_relay_memory()) {
      throw Error(ExitCode::unavailable,
                  fmt::format("policy {} is for GPUs that may hold whatever they pass on, and '{}' has "
                              "buffer_bytes (--relay-memory); choose another one",
                              options.policy, topology->name()));
    }
    if (rules.fitting_rates && !*fitting)
      fitting->emplace(*topology, HopTable::kMostPaths, fitting_divisor(*whole, options));
    const HopTable& hops = rules.fitting_rates ? **fitting : *whole;
    EngineResult result;
    const Deadline deadline(options.limits);
    if (rules.pairwise && may_go_along_trees(demand)) {
      result.schedule = schedule_along_trees(*topology, hops, demand, rules, deadline);
    } else {
      const Deliveries deliveries = plan_deliveries(*topology, hops, demand, options.seed);
      result.schedule = list_schedule(*topology, hops, demand, deliveries, rules, deadline);
    }
    if (!result.schedule) result.limits_hit.push_back(deadline.ended_by());
    return result;
  };
}

EngineInfo list_engine() {
  return {.name = "list",
          .help = "event-driven list scheduling in continuous time; any demand",
          .policies = list_policies(),
          // Without copies routes are known beforehand, and `flow` finds better ones, unless the problem is
          // small. AllGather and Broadcast of many GPUs are left to what does not scan over all chunks.
          .applicable =
              [](const Instance& instance, const EngineOptions& options) {
                if (instance.topology->has_bandwidth_steps() || instance.topology->limits_relay_memory())
                  return true;
                if (instance.demand.is_unicast()) {
                  return instance.demand.contributions().size() <=
                         (may_join(instance, options) ? kFewContributionsJoined : kFewContributions);
                }
                return instance.topology->num_gpus() <= kFewGpus ||
                       (!is_plain_allgather(instance) && !is_rooted(instance.demand));
              },
          .offers =
              [](const Instance& instance, const EngineOptions& options) {
                const bool joins = may_join(instance, options);
                const bool is_fitting = !instance.topology->has_bandwidth_steps() &&
                                        fitting_divisor(HopTable(*instance.topology), options) > 1;
                const bool is_large = instance.demand.contributions().size() > kFewContributions;
                const bool joins_only = instance.demand.is_unicast() && is_large && joins;
                return [=](const std::string& policy) {
                  const ListRules rules = list_rules(policy, 0);
                  if (rules.joined) return joins;
                  return !joins_only && (!rules.fitting_rates || is_fitting);
                };
              },
          // It looks through the chunks for every send.
          .work =
              [](const Demand& demand, const std::string&) {
                return demand.num_deliveries() * (1 + static_cast<double>(demand.num_chunks()) / 1024);
              },
          .heeds_bandwidth_steps = true,
          .supports_local_search = true,
          .traits = kContinuousTime,
          .prepare = prepare_list,
          // Behind a switch of many GPUs all of them look at all hops whenever one has sent.
          .work_share =
              [](const Instance& instance, const EngineOptions&) {
                const std::size_t gpus = instance.topology->num_gpus();
                if (gpus <= kFewGpus) return 1.0;
                const std::size_t hops = HopTable(*instance.topology).hops().size() / gpus;
                const double many = static_cast<double>(hops) / kUsualHops;
                return hops > kFewGpus ? many * many : 1.0;
              }};
}

}  // namespace rondo
