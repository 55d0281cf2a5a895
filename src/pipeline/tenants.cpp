#include "tenants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "rondo/bounds/bounds.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/interleaving.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/tenants.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/core/version.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "rondo/pipeline/registry.hpp"
#include "shared_bounds.hpp"
#include "tenant_orders.hpp"
#include "time_shares.hpp"
#include "weighted_cut.hpp"

namespace rondo {
namespace {

/// Sends that are timed in all orders together, and the orders that are tried at least.
constexpr double kOrderWork = 1e7;
constexpr std::size_t kLeastOrders = 12;

/// Transfers of all tenants beside each other, each as it would be without the others.
struct Mixture {
  std::string made_by;
  Demand demand;
  std::vector<Send> sends;
  bool fits = false;  ///< the sends as they are
};

/// What a schedule is worth: less is better.
using Worth = std::pair<double, double>;
constexpr Worth kWorthless{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};

class TenantSynthesis {
 public:
  TenantSynthesis(const Problem& problem, const RunContext& context)
      : problem_(problem), context_(context), tenants_(tenants_of(problem.demand)) {}

  SynthesisResult run();

 private:
  void solve_alone();
  void add_mixture_of_parts();
  void add_joint();
  /// Per send, the position of its tenant.
  std::vector<std::size_t> tenant_of_sends(const Mixture& mixture) const;
  std::vector<double> keys(const Mixture& mixture, const TenantOrder& order) const;
  Schedule timed(const Mixture& mixture, const TenantOrder& order) const;
  Worth worth_of(const Demand& demand, const Schedule& schedule) const;
  Worth worth_of_times(const std::vector<double>& finishes_us) const;
  bool try_orders(std::size_t mixture, const std::vector<TenantOrder>& orders);
  void search(const std::vector<std::size_t>& by_bound);
  void compare(SynthesisResult& result) const;

  const Problem& problem_;
  const RunContext& context_;
  std::vector<Tenant> tenants_;
  std::vector<SynthesisResult> alone_;
  std::vector<TenantOutcome> outcomes_;
  std::vector<Mixture> mixtures_;
  std::size_t orders_left_ = 0;
  // The best so far.
  Worth worth_ = kWorthless;
  std::size_t mixture_ = 0;
  TenantOrder order_;
  std::map<std::string, Worth> tried_;
  std::vector<std::string> limits_hit_;
};

void TenantSynthesis::solve_alone() {
  for (std::size_t t = 0; t < tenants_.size(); ++t) {
    Problem part{problem_.topology, demand_of_tenant(problem_.demand, tenants_[t]), problem_.options};
    part.options.time_limit_s = time_limit_of_part(problem_.options, context_, tenants_.size() - t + 2);
    const Checkpoints::Prefix names(context_.checkpoints(), fmt::format("tenant-{}-", tenants_[t].number));
    SynthesisResult& solved = alone_.emplace_back(synthesize_as_one(part, context_));
    limits_hit_.insert(limits_hit_.end(), solved.limits_hit.begin(), solved.limits_hit.end());
    outcomes_.push_back(
        {tenants_[t], 0, *solved.proven.lower_bound, solved.proven.schedule.finish_us, solved.engine});
    context_.tell(
        fmt::format("tenant {} alone: {:.6g} us", tenants_[t].number, solved.proven.schedule.finish_us));
  }
}

/// A contribution of a mixture is a chunk of a tenant's own schedule.
void TenantSynthesis::add_mixture_of_parts() {
  std::vector<Contribution> all;
  std::vector<Send> sends;
  std::int32_t next_number = 0;
  for (std::size_t t = 0; t < tenants_.size(); ++t) {
    const ProvenSchedule& proven = alone_[t].proven;
    const auto first = static_cast<std::int32_t>(all.size());
    const double start_us = tenants_[t].start_us;
    for (std::size_t c = 0; c < proven.demand.num_chunks(); ++c) {
      Contribution& part = all.emplace_back(proven.demand.contribution(ChunkId(c)));
      part.bytes = proven.demand.bytes(ChunkId(c));
      part.tenant = tenants_[t].number;
      part.priority = tenants_[t].priority;
      part.ready_us += start_us;
      for (double& ready_us : part.source_ready_us) ready_us += start_us;
    }
    std::int32_t largest = -1;
    for (Send send : proven.schedule.sends) {
      send.chunk = ChunkId(send.chunk.value + first);
      delay(send, start_us);
      largest = std::max(largest, send.transfer);
      if (send.transfer != kNoTransfer) send.transfer += next_number;
      sends.push_back(send);
    }
    next_number += largest + 1;
  }
  mixtures_.push_back({"alone",
                       Demand(Collective::custom, problem_.demand.size_bytes(), problem_.demand.num_gpus(),
                              std::move(all), 1),
                       std::move(sends)});
}

/// All as one demand, by the engines that know it.
void TenantSynthesis::add_joint() {
  Problem joint = problem_;
  joint.options.time_limit_s = time_limit_of_part(problem_.options, context_, 2);
  try {
    const Checkpoints::Prefix names(context_.checkpoints(), "joint-");
    SynthesisResult solved = synthesize_as_one(joint, context_);
    limits_hit_.insert(limits_hit_.end(), solved.limits_hit.begin(), solved.limits_hit.end());
    context_.tell(fmt::format("all as one demand: {:.6g} us", solved.proven.schedule.finish_us));
    mixtures_.push_back({"joint/" + solved.engine, std::move(solved.proven.demand),
                         std::move(solved.proven.schedule.sends), true});
  } catch (const Error& error) {
    // Sums beside copies, or a named engine that knows only the parts.
    if (error.code() != ExitCode::unavailable || context_.interrupted()) throw;
  }
}

std::vector<std::size_t> TenantSynthesis::tenant_of_sends(const Mixture& mixture) const {
  std::map<int, std::size_t> position;
  for (std::size_t t = 0; t < tenants_.size(); ++t) position[tenants_[t].number] = t;
  std::vector<std::size_t> tenant_of;
  for (const Send& send : mixture.sends)
    tenant_of.push_back(position.at(mixture.demand.contribution(send.chunk).tenant));
  return tenant_of;
}

std::vector<double> TenantSynthesis::keys(const Mixture& mixture, const TenantOrder& order) const {
  const std::vector<std::size_t> tenant_of = tenant_of_sends(mixture);
  double longest = 1;
  for (const Send& send : mixture.sends) longest = std::max(longest, send.arrival_us);
  std::vector<double> keys;
  for (std::size_t s = 0; s < mixture.sends.size(); ++s) {
    const Send& send = mixture.sends[s];
    const std::size_t t = tenant_of[s];
    const TenantTurn& turn = order.turns[t];
    const bool from_zero = turn.scale == 1;
    const double since_us = send.start_us - (from_zero ? 0 : tenants_[t].start_us);
    keys.push_back(2 * longest * turn.place + since_us * turn.scale);
  }
  return keys;
}

Schedule TenantSynthesis::timed(const Mixture& mixture, const TenantOrder& order) const {
  if (order.placing == TenantPlacing::inserted || order.placing == TenantPlacing::rerouted)
    return inserted(*problem_.topology, mixture.demand, mixture.sends, keys(mixture, order),
                    problem_.options.concurrency, order.placing == TenantPlacing::rerouted);
  if (order.placing == TenantPlacing::behind)
    return {one_behind_another(*problem_.topology, order, mixture.sends, tenant_of_sends(mixture))};
  return interleaved({*problem_.topology, mixture.sends}, *problem_.topology, mixture.demand,
                     keys(mixture, order), problem_.options.concurrency);
}

Worth TenantSynthesis::worth_of_times(const std::vector<double>& finishes_us) const {
  double weighted = 0;
  for (std::size_t t = 0; t < tenants_.size(); ++t) weighted += tenants_[t].priority * finishes_us[t];
  const double finish = *std::ranges::max_element(finishes_us);
  return problem_.options.objective == Objective::finish ? Worth(finish, weighted) : Worth(weighted, finish);
}

Worth TenantSynthesis::worth_of(const Demand& demand, const Schedule& schedule) const {
  const ReplayResult replayed = replay(*problem_.topology, demand, schedule.sends);
  if (!replayed.valid()) return kWorthless;
  return worth_of_times(tenant_finishes_us(demand, replayed.contribution_finish_us));
}

/// Collective. Whether one of them is better than all before.
bool TenantSynthesis::try_orders(std::size_t m, const std::vector<TenantOrder>& orders) {
  const Mixture& mixture = mixtures_[m];
  const std::vector<double> work(orders.size(), static_cast<double>(mixture.sends.size()));
  const std::vector<PartOutcome> outcomes = map_parts(context_.communicator, work, [&](std::size_t i) {
    Worth worth = kWorthless;
    try {
      worth = worth_of(mixture.demand, timed(mixture, orders[i]));
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable) throw;
    }
    MessageWriter writer;
    writer.put(worth.first);
    writer.put(worth.second);
    return writer.take();
  });
  bool is_better = false;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    if (outcomes[i].error) throw *outcomes[i].error;
    MessageReader reader(outcomes[i].value);
    Worth worth;
    worth.first = reader.get<double>();
    worth.second = reader.get<double>();
    auto [known, is_new] = tried_.try_emplace(mixture.made_by + "/" + orders[i].name, worth);
    if (!is_new) known->second = std::min(known->second, worth);
    if (!(worth < worth_)) continue;
    worth_ = worth;
    mixture_ = m;
    order_ = orders[i];
    is_better = true;
  }
  orders_left_ -= std::min(orders_left_, orders.size());
  return is_better;
}

/// Collective. `by_bound`: the order in which the bound of the weighted sum lets them end.
void TenantSynthesis::search(const std::vector<std::size_t>& by_bound) {
  for (std::size_t m = 0; m < mixtures_.size(); ++m) {
    if (mixtures_[m].fits) {
      const Worth worth = worth_of(mixtures_[m].demand, {mixtures_[m].sends});
      tried_[mixtures_[m].made_by] = worth;
      if (worth < worth_) {
        worth_ = worth;
        mixture_ = m;
        order_ = {};
      }
    }
    try_orders(m, first_orders(outcomes_, by_bound));
  }
  while (orders_left_ > 0 && !order_.turns.empty() && !context_.interrupted()) {
    std::vector<TenantOrder> next = exchanges(order_);
    if (next.empty() || !try_orders(mixture_, next)) break;
  }
}

/// What the report says of sharing without a plan, and of no sharing at all.
void TenantSynthesis::compare(SynthesisResult& result) const {
  std::vector<double> ends_us;
  double at_us = 0;
  for (std::size_t t = 0; t < tenants_.size(); ++t) {
    at_us = std::max(at_us, tenants_[t].start_us) + outcomes_[t].alone_us;
    ends_us.push_back(at_us);
  }
  const bool by_finish = problem_.options.objective == Objective::finish;
  const auto note = [&](const std::string& name, const Worth& worth) {
    if (!std::isfinite(worth.first)) return;
    result.metrics[name + "_finish_us"] = by_finish ? worth.first : worth.second;
    result.metrics[name + "_weighted_us"] = by_finish ? worth.second : worth.first;
  };
  note("one_after_the_other", worth_of_times(ends_us));
  note("blind_sharing", tried_.at("alone/blind"));
  for (const auto& [name, worth] : tried_) {
    if (std::isfinite(worth.first))
      result.candidates.push_back({name, 1, by_finish ? worth.first : worth.second});
  }
}

SynthesisResult TenantSynthesis::run() {
  const Stopwatch clock;
  const Bounds bounds = shared_bounds(problem_, prepare_toolbox(problem_.options, context_), context_);
  const double bounds_s = clock.seconds();
  solve_alone();
  add_mixture_of_parts();
  add_joint();
  const double solved_s = clock.seconds();
  double sends = 0;
  for (const Mixture& mixture : mixtures_) sends = std::max(sends, static_cast<double>(mixture.sends.size()));
  orders_left_ = std::max(kLeastOrders, static_cast<std::size_t>(kOrderWork / std::max(1.0, sends)));
  const std::vector<std::vector<NodeId>> cuts = weighted_cuts(problem_.instance(), bounds, outcomes_);
  search(weighted_bound(weighed(*problem_.topology, problem_.demand, outcomes_, cuts)).order);
  if (worth_ == kWorthless) {
    throw Error(ExitCode::unavailable,
                "no order was found in which the schedules of all tenants go together; solve them as one "
                "demand of one tenant, or one after the other");
  }
  const Mixture& mixture = mixtures_[mixture_];
  Schedule schedule = order_.turns.empty() ? Schedule{mixture.sends} : timed(mixture, order_);
  canonicalise(schedule);
  Sharing sharing =
      sharing_of(*problem_.topology, mixture.demand, schedule, problem_.options.objective, outcomes_, cuts);
  double finish_us = 0;
  for (const TenantOutcome& tenant : sharing.tenants) finish_us = std::max(finish_us, tenant.finish_us);
  schedule.finish_us = finish_us;
  SynthesisResult result{
      {*problem_.topology, mixture.demand, std::move(schedule), bounds.best(), producer()}};
  result.gap = finish_us / bounds.best().us - 1;
  result.engine = mixture.made_by + (order_.name.empty() ? "" : "/" + order_.name);
  result.seed = problem_.options.seed;
  result.remarks = bounds.remarks;
  result.limits_hit = limits_hit_;
  compare(result);
  result.sharing = std::move(sharing);
  result.wall_parts_s = {{"bounds", bounds_s},
                         {"search", solved_s - bounds_s},
                         {"orders", clock.seconds() - solved_s},
                         {"checkpoints", context_.checkpoints().seconds()}};
  return result;
}

[[noreturn]] void refuse_tenants(const std::string& why) {
  throw Error(ExitCode::unavailable, fmt::format("several tenants share the fabric, and {}", why));
}

}  // namespace

bool is_shared(const Problem& problem) {
  const auto& all = problem.demand.contributions();
  return std::ranges::any_of(all, [&](const Contribution& c) { return c.tenant != all.front().tenant; });
}

void check_tenants(const Problem& problem) {
  const EngineInfo& engine = find_engine_or_auto(problem.options.engine);
  if (engine.works_in_rounds || engine.answers) {
    refuse_tenants(fmt::format("engine {} is for one collective; use --engine auto, or another one",
                               problem.options.engine));
  }
  if (problem.start) refuse_tenants("--from begins with the schedule of one collective; leave it out");
  if (problem.sketch) refuse_tenants("a sketch says how one collective moves; give --sketch-parts links");
  if (problem.demand.forbids_relays()) refuse_tenants("--relay none is of one group; leave it out");
  for (const Tenant& tenant : tenants_of(problem.demand))
    check_options({problem.topology, demand_of_tenant(problem.demand, tenant), problem.options});
}

SynthesisResult synthesize_for_tenants(const Problem& problem, const RunContext& context) {
  return TenantSynthesis(problem, context).run();
}

}  // namespace rondo
