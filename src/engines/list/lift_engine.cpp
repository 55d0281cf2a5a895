#include <algorithm>
#include <memory>
#include <utility>

#include "lifted_scheduler.hpp"
#include "lifted_transfers.hpp"
#include "policy_table.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo {
namespace {

/// Queue entries that a schedule of one chunk a GPU may cost: hops up to translation, times chunks.
constexpr double kMaxEntries = 2e6;

struct LiftPolicy {
  std::string name;
  LiftedOrder order;
  LiftedSenders senders;
};

/// The first one is the default.
const std::vector<LiftPolicy>& lift_policy_table() {
  static const std::vector<LiftPolicy> table{
      {"rarest", LiftedOrder::rarest, LiftedSenders::best_chunk},
      {"furthest-scarce", LiftedOrder::furthest, LiftedSenders::scarcest},
      {"rarest-full", LiftedOrder::rarest, LiftedSenders::fullest},
      {"rarest-scarce", LiftedOrder::rarest, LiftedSenders::scarcest},
      {"furthest", LiftedOrder::furthest, LiftedSenders::best_chunk},
      {"furthest-fit", LiftedOrder::furthest, LiftedSenders::fitting},
      {"nearest", LiftedOrder::nearest, LiftedSenders::best_chunk},
      {"oldest-full", LiftedOrder::oldest, LiftedSenders::fullest},
      {"oldest-scarce", LiftedOrder::oldest, LiftedSenders::scarcest},
  };
  return table;
}

/// What all chunk counts, policies and seeds share.
struct Prepared {
  std::shared_ptr<const Topology> topology;
  std::shared_ptr<const Translations> translations;  ///< what the hops refer to
  LiftedHops hops;
  Prepared(const Instance& instance, std::shared_ptr<const Translations> group)
      : topology(instance.topology),
        translations(std::move(group)),
        hops(*topology, *translations,
             static_cast<std::size_t>(kMaxEntries / static_cast<double>(topology->num_gpus()))) {}
};

void check_supported(const Instance& instance, const std::string& engine) {
  if (is_plain_allgather(instance)) return;
  throw Error(ExitCode::unavailable,
              "engine " + engine +
                  " does AllGather of equal parts on fabrics without shared bandwidth; use --engine list");
}

PreparedEngine engine_of(std::shared_ptr<const Prepared> prepared, const std::string& name) {
  return [prepared = std::move(prepared), name](const Demand& demand, const EngineOptions& options) {
    const LiftPolicy& policy = find_policy(lift_policy_table(), options.policy, name);
    EngineResult result;
    const auto& [topology, translations, hops] = *prepared;
    const Deadline deadline(options.limits);
    const auto moves = lifted_moves(*topology, *translations, hops, demand,
                                    {policy.order, policy.senders, options.seed}, deadline);
    if (moves) result.schedule = all_translations(*topology, *translations, hops, demand, *moves);
    if (!moves) result.limits_hit.push_back(deadline.ended_by());
    result.metrics["translations"] = static_cast<double>(translations->order());
    return result;
  };
}

}  // namespace

bool is_plain_allgather(const Instance& instance) {
  const Demand& demand = instance.demand;
  const std::size_t gpus = instance.topology->num_gpus();
  if (!instance.topology->shared_bandwidth().empty() || !demand.uniform_chunk_bytes() ||
      demand.contributions().size() != gpus) {
    return false;
  }
  std::vector<char> seen(gpus, 0);
  return std::ranges::all_of(demand.contributions(), [&](const Contribution& c) {
    return c.ready_us == 0 && c.destinations.size() + 1 == gpus && !std::exchange(seen[c.origin.index()], 1);
  });
}

const std::vector<std::string>& lift_policies() {
  static const std::vector<std::string> names = names_of(lift_policy_table());
  return names;
}

std::shared_ptr<const Translations> translations_of(const Instance& instance, const EngineOptions& options) {
  if (options.translations) return options.translations;
  const Topology& topology = *instance.topology;
  const bool may_lift = options.symmetry && is_plain_allgather(instance);
  return std::make_shared<const Translations>(
      may_lift ? Translations::find(topology, demand_pattern(instance.demand))
               : Translations::identity(topology));
}

PreparedEngine prepare_queue(const Instance& instance, const EngineOptions&, const Toolbox&) {
  check_supported(instance, "queue");
  auto identity = std::make_shared<const Translations>(Translations::identity(*instance.topology));
  return engine_of(std::make_shared<const Prepared>(instance, std::move(identity)), "queue");
}

PreparedEngine prepare_lift(const Instance& instance, const EngineOptions& options, const Toolbox& tools) {
  check_supported(instance, "lift");
  if (!options.symmetry) return prepare_queue(instance, options, tools);
  auto prepared = std::make_shared<const Prepared>(instance, translations_of(instance, options));
  // Hops that would be in the way of their own translations are left out: the others may not be enough.
  if (!prepared->hops.reach_all()) return prepare_queue(instance, options, tools);
  return engine_of(std::move(prepared), "lift");
}

}  // namespace rondo
