#include "rondo/pipeline/kept_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/local_search/rerouting.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo {
namespace {

constexpr const char* kOrder = "order";
constexpr const char* kRerouted = "rerouted";

bool same_data(const Contribution& a, const Contribution& b) {
  return a.origin == b.origin && a.destinations == b.destinations && a.reduce == b.reduce &&
         std::ranges::equal(a.all_sources(), b.all_sources()) && a.held == b.held;
}

/// Whether rerouted() knows the demand; sums for one GPU each are transposed first.
bool is_rerouted(DemandKind kind) {
  return kind != DemandKind::all_reduction;
}

bool switch_copies(const ProvenSchedule& kept) {
  PlanSpace space = make_plan_space(kept.topology, kept.demand);
  return !plan_of(kept.schedule, space).has_value();
}

/// Nothing where the plan is to be rerouted and cannot be, or a link is gone and it is not to be.
std::optional<Schedule> adapted(const ProvenSchedule& kept, const Problem& problem, const Demand& demand,
                                const std::string& policy, double bound_us) {
  const Topology& topology = *problem.topology;
  const std::vector<LinkId> links = matching_links(kept.topology, topology);
  const int concurrency = problem.options.concurrency;
  if (policy == kOrder) {
    if (!missing_link(kept, topology, links).empty()) return std::nullopt;
    return replayed_elsewhere(kept, topology, demand, concurrency);
  }
  PlanSpace space = make_plan_space(topology, demand, concurrency);
  const double due_scale = bound_us / kept.schedule.finish_us;
  const auto plan = rerouted(kept, links, space, due_scale);
  if (!plan) return std::nullopt;
  return schedule_of(*plan, space);
}

/// The first send that a link without bandwidth from then on keeps for ever.
void check_ends(const Schedule& schedule, const Topology& topology) {
  const auto first = std::ranges::min_element(schedule.sends, {}, [](const Send& send) {
    return std::pair(std::isfinite(send.end_us), send.start_us);
  });
  if (first == schedule.sends.end() || std::isfinite(first->end_us)) return;
  const Link& link = topology.link(first->link);
  throw Error(
      ExitCode::unavailable,
      fmt::format("in its own order the schedule does not work there: chunk {} never gets over link {} "
                  "(node {} -> node {}), which stays down; rondo solve --from takes other paths",
                  first->chunk.value, first->link.value, link.src.value, link.dst.value));
}

std::vector<LinkId> links_elsewhere(const ProvenSchedule& kept, const Topology& topology) {
  std::vector<LinkId> links = matching_links(kept.topology, topology);
  if (const std::string missing = missing_link(kept, topology, links); !missing.empty()) {
    throw Error(ExitCode::bad_data,
                missing + "; replay it on a fabric with that link, or rondo solve --from it there");
  }
  return links;
}

/// With its finish time, once the replay has accepted it.
Schedule replayed(Schedule schedule, const Topology& topology, const Demand& demand) {
  check_ends(schedule, topology);
  const ReplayResult replayed = replay(topology, demand, schedule.sends);
  if (!replayed.valid()) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("in its own order the schedule does not work there: {}; rondo solve makes one that does",
                    *replayed.violation));
  }
  schedule.finish_us = replayed.finish_us;
  return schedule;
}

EngineInfo row_of_kept(int chunks) {
  EngineInfo row;
  row.name = "kept";
  row.help = "a schedule made before";
  row.supports_local_search = true;
  row.heeds_bandwidth_steps = true;
  row.traits = kContinuousTime;
  row.only_chunks = chunks;
  return row;
}

}  // namespace

std::string missing_link(const ProvenSchedule& kept, const Topology& topology,
                         const std::vector<LinkId>& links) {
  for (const Send& send : kept.schedule.sends) {
    if (links[send.link.index()].valid()) continue;
    const Link& link = kept.topology.link(send.link);
    return fmt::format("chunk {} goes over link {} (node {} -> node {}) from {} us, which '{}' does not have",
                       send.chunk.value, send.link.value, link.src.value, link.dst.value, send.start_us,
                       topology.name());
  }
  return "";
}

/// Sums for one GPU each as what spreads, which sums are backwards.
struct ReplayElsewhere::Backwards {
  Backwards(const ProvenSchedule& kept, const Topology& there, const std::vector<LinkId>& links,
            const Demand& demand)
      : spreading(transposed(kept)),
        topology(transposed(there)),
        retimer({spreading.topology, spreading.schedule.sends, links}, topology, transposed(demand)) {}

  /// Nothing where that does not work.
  std::optional<Schedule> at(const Topology& there, const Demand& demand, int concurrency) {
    const Demand turned = transposed(demand);
    const Schedule spread = retimer.at(turned, concurrency);
    try {
      return replayed({reversed_in_time(topology, turned, spread.sends, spread.finish_us)}, there, demand);
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable) throw;
      return std::nullopt;
    }
  }

  ProvenSchedule spreading;
  Topology topology;
  Retimer retimer;
};

ReplayElsewhere::ReplayElsewhere(const ProvenSchedule& kept, const Topology& topology, const Demand& demand)
    : kept_(kept), topology_(topology), links_(links_elsewhere(kept, topology)) {
  const bool is_same_backwards = demand.kind() == DemandKind::reduction &&
                                 is_transposable(kept.topology, kept.demand) &&
                                 is_transposable(topology, demand);
  if (is_same_backwards) backwards_ = std::make_unique<Backwards>(kept, topology, links_, demand);
}
ReplayElsewhere::ReplayElsewhere(ReplayElsewhere&&) noexcept = default;
ReplayElsewhere::~ReplayElsewhere() = default;

Schedule ReplayElsewhere::at(const Demand& demand, int concurrency) {
  if (backwards_) {
    if (auto schedule = backwards_->at(topology_, demand, concurrency)) return *std::move(schedule);
  }
  return replayed(forwards().at(demand, concurrency), topology_, demand);
}

double ReplayElsewhere::guess_us(const Demand& demand) {
  const Schedule guess = backwards_ ? backwards_->retimer.at(transposed(demand)) : forwards().at(demand);
  return guess.finish_us;
}

Retimer& ReplayElsewhere::forwards() {
  if (!forwards_)
    forwards_.emplace(TimedSends{kept_.topology, kept_.schedule.sends, links_}, topology_, kept_.demand);
  return *forwards_;
}

Schedule replayed_elsewhere(const ProvenSchedule& kept, const Topology& topology, const Demand& demand,
                            int concurrency) {
  return ReplayElsewhere(kept, topology, demand).at(demand, concurrency);
}

int chunks_of_kept(const ProvenSchedule& kept, const Problem& problem) {
  const Demand& wanted = problem.demand;
  if (wanted.forbids_relays()) {
    throw Error(
        ExitCode::unavailable,
        "--from adapts schedules in which any GPU may relay; solve without it, or leave --relay none out");
  }
  const auto other = [&](const std::string& what) {
    return Error(ExitCode::bad_data, fmt::format("the schedule of --from does not move the data of this "
                                                 "problem: {}; give one of the same collective and GPUs",
                                                 what));
  };
  if (kept.demand.num_gpus() != wanted.num_gpus())
    throw other(fmt::format("it has {} GPUs, not {}", kept.demand.num_gpus(), wanted.num_gpus()));
  const std::size_t contributions = wanted.contributions().size();
  if (kept.demand.num_chunks() % contributions != 0) {
    throw other(fmt::format("its {} chunks are no multiple of {} contributions", kept.demand.num_chunks(),
                            contributions));
  }
  const int chunks = static_cast<int>(kept.demand.num_chunks() / contributions);
  const Demand split = wanted.with_chunks(chunks);
  for (std::size_t i = 0; i < split.num_chunks(); ++i) {
    const ChunkId c(i);
    if (!same_data(kept.demand.contribution(c), split.contribution(c)))
      throw other(fmt::format("chunk {} has other sources or destinations", i));
  }
  if (problem.options.chunks != 0 && problem.options.chunks != chunks) {
    throw Error(ExitCode::usage, fmt::format("--chunks is {}, but the schedule of --from has {} chunks a "
                                             "contribution; leave --chunks out",
                                             problem.options.chunks, chunks));
  }
  const std::vector<LinkId> links = matching_links(kept.topology, *problem.topology);
  if (const std::string missing = missing_link(kept, *problem.topology, links); !missing.empty()) {
    const bool can_reroute = is_rerouted(wanted.kind()) &&
                             !switch_copies(wanted.kind() == DemandKind::reduction ? transposed(kept) : kept);
    if (!can_reroute) {
      throw Error(ExitCode::bad_data,
                  fmt::format("{}; sums for several GPUs and copies in switches are not rerouted: solve "
                              "without --from",
                              missing));
    }
  }
  return chunks;
}

ProvenSchedule transposed(const ProvenSchedule& kept) {
  Schedule spread{reversed_in_time(kept.topology, kept.demand, kept.schedule.sends, kept.schedule.finish_us),
                  kept.schedule.finish_us};
  for (Send& send : spread.sends) send.op = SendOp::copy;
  return {transposed(kept.topology), transposed(kept.demand), std::move(spread), kept.lower_bound,
          kept.producer};
}

EngineInfo kept_engine(const Problem& problem) {
  EngineInfo row = row_of_kept(chunks_of_kept(*problem.start, problem));
  row.policies = {kOrder};
  if (is_rerouted(problem.demand.kind())) row.policies.emplace_back(kRerouted);
  row.prepare = [&problem](const Instance&, const EngineOptions& prepared, const Toolbox&) -> PreparedEngine {
    const double bound_us = prepared.bound_us;
    return [&problem, bound_us](const Demand& demand, const EngineOptions& options) -> EngineResult {
      try {
        return {adapted(*problem.start, problem, demand, options.policy, bound_us)};
      } catch (const Error& error) {
        // Others may do; where all fail, the search says that there is no schedule.
        if (error.code() != ExitCode::unavailable) throw;
        return {.remarks = {error.what()}};
      }
    };
  };
  return row;
}

EngineInfo kept_engine(Schedule adapted, int chunks) {
  EngineInfo row = row_of_kept(chunks);
  row.policies = {kRerouted};
  row.prepare = [kept = std::make_shared<const Schedule>(std::move(adapted))](
                    const Instance&, const EngineOptions&, const Toolbox&) -> PreparedEngine {
    return [kept](const Demand&, const EngineOptions&) -> EngineResult { return {*kept}; };
  };
  return row;
}

}  // namespace rondo
