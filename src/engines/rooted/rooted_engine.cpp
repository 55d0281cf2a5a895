#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "../steps/dealing.hpp"
#include "interleaved_trees.hpp"
#include "out_tree_packing.hpp"
#include "rondo/core/error.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "tree_pipeline.hpp"
#include "whole_trees.hpp"

/// Data of one GPU along out-trees, packed at the least cut between it and those that want it.
namespace rondo {
namespace {

constexpr double kShareOfOutTrees = 0.5;  ///< of a time limit
/// Of a schedule: many GPUs are far from the root, and need many chunks on their way.
constexpr double kMostSends = 2.4e6;
constexpr double kMostSendsOfMany = 3.5e7;
/// One send costs little: what waits for a link is known, nothing is looked for.
constexpr double kWorkOfSend = 0.02;

constexpr const char* kWhole = "whole";       // few trees, each link carries whole ones
constexpr const char* kFinish = "finish";     // deep trees take less of the data
constexpr const char* kRates = "even-rates";  // every hop at a rate of its own
struct DepthPolicy {
  const char* name;
  DepthPreference depth;
};
constexpr DepthPolicy kDepthPolicies[] = {{"even", {0.3}},
                                          {"deep", {0.03}},
                                          {"shallow", {3}},
                                          {kFinish, {0.3, PackingAim::finish}},
                                          {kRates, {0.3, PackingAim::depth}}};

const DepthPreference& depth_preference_of(const std::string& policy) {
  for (const DepthPolicy& known : kDepthPolicies) {
    if (policy == known.name) return known.depth;
  }
  throw Error(ExitCode::usage,
              fmt::format("policy '{}' is unknown to engine rooted; known are: whole, even, deep, shallow, "
                          "finish, even-rates",
                          policy));
}

RootedData data_of(const Demand& demand) {
  const auto& contributions = demand.contributions();
  RootedData data{contributions.front().origin, contributions.front().destinations, 0};
  for (const Contribution& c : contributions) data.bytes += c.bytes;
  return data;
}

struct RootedProblem {
  std::shared_ptr<const Topology> topology;
  RootedData data;
  CopyGraph graph;
  double least_busy_us;
  bool are_links;  ///< the arcs: no transfer needs several links at once
  bool is_large;   ///< of more destinations than their cuts are looked for
};

/// Of more destinations than their cuts are looked for, the bound of all schedules has to do.
RootedProblem problem_of(const Instance& instance, double bound_us) {
  RootedData data = data_of(instance.demand);
  const bool are_many = data.destinations.size() > kMostCutDestinations;
  const double least_us = are_many ? bound_us : least_busy_us(*instance.topology, data);
  CopyGraph graph = make_copy_graph(*instance.topology);
  const bool are_links = graph.arcs.size() == instance.topology->num_links() &&
                         instance.topology->num_gpus() == instance.topology->num_nodes();
  return {instance.topology, std::move(data), std::move(graph), least_us, are_links, are_many};
}

/// The trees of each policy, packed when they are first asked for.
class Packings {
 public:
  Packings(RootedProblem problem, MakeColumnMaster make_master, const Deadline& deadline)
      : problem_(std::move(problem)), make_master_(std::move(make_master)), deadline_(deadline) {}

  const RootedProblem& problem() const { return problem_; }

  /// Of many GPUs, columns take minutes to come to what whole trees of single links are from the start.
  bool needs_whole_trees_alone() {
    return problem_.is_large && may_have_whole_trees(*problem_.topology, problem_.graph, problem_.data) &&
           whole_trees();
  }

  /// `policy`: empty for whole trees where there are, else the first of the others.
  const OutTreePacking& of(const std::string& policy) {
    const bool is_default = policy.empty();
    if (is_default || policy == kWhole) {
      if (whole_trees()) return *whole_trees();
      if (!is_default) {
        throw Error(ExitCode::unavailable,
                    "engine rooted: no few whole trees fill these links; use another policy, such as even");
      }
    }
    const std::string of_columns = is_default ? kDepthPolicies[0].name : policy;
    auto packing = by_columns_.find(of_columns);
    if (packing == by_columns_.end()) {
      OutTreePacking packed =
          pack_out_trees(*problem_.topology, problem_.graph, problem_.data, depth_preference_of(of_columns),
                         problem_.least_busy_us, make_master_, deadline_);
      packing = by_columns_.emplace(of_columns, std::move(packed)).first;
    }
    return packing->second;
  }

 private:
  const std::optional<OutTreePacking>& whole_trees() {
    if (!were_looked_for_) {
      were_looked_for_ = true;
      if (may_have_whole_trees(*problem_.topology, problem_.graph, problem_.data)) {
        whole_ = pack_whole_trees(*problem_.topology, problem_.graph, problem_.data, problem_.least_busy_us);
      } else if (may_interleave_trees(*problem_.topology, problem_.graph, problem_.data)) {
        whole_ = interleave_trees(*problem_.topology, problem_.graph, problem_.data, problem_.least_busy_us);
      }
    }
    return whole_;
  }

  RootedProblem problem_;
  MakeColumnMaster make_master_;
  Deadline deadline_;
  bool were_looked_for_ = false;
  std::optional<OutTreePacking> whole_;
  std::map<std::string, OutTreePacking> by_columns_;
};

}  // namespace

bool is_rooted(const Demand& demand) {
  const auto& contributions = demand.contributions();
  const Contribution& first = contributions.front();
  return demand.kind() == DemandKind::multicast && demand.uniform_chunk_bytes() &&
         std::ranges::all_of(contributions, [&](const Contribution& c) {
           return c.origin == first.origin && c.destinations == first.destinations;
         });
}

PreparedEngine prepare_rooted(const Instance& instance, const EngineOptions& options, const Toolbox& tools) {
  if (!is_rooted(instance.demand)) {
    throw Error(ExitCode::unavailable,
                "engine rooted does Broadcast and Reduce: data of one GPU in equal parts, which several want "
                "all of; use --engine auto");
  }
  const auto packings =
      std::make_shared<Packings>(problem_of(instance, options.bound_us), tools.column_master,
                                 Deadline(options.limits).after(kShareOfOutTrees));
  return [packings](const Demand& demand, const EngineOptions& asked) {
    const bool is_whole = asked.policy == kWhole;
    if (!is_whole && !asked.policy_is_asked && packings->needs_whole_trees_alone()) return EngineResult{};
    const RootedProblem& problem = packings->problem();
    const bool has_rates = asked.policy == kRates || (is_whole && !problem.are_links);
    const OutTreePacking& packed = packings->of(asked.policy);
    std::vector<double> shares;
    for (const OutTree& tree : packed.trees) shares.push_back(tree.weight);
    EngineResult result;
    const Deadline until(asked.limits);
    result.schedule = schedule_pipelined(*problem.topology, demand, packed.trees,
                                         deal(shares, demand.num_chunks()), packed.busy_us, packed.finish_us,
                                         has_rates ? HopRates::of_their_trees : HopRates::of_links,
                                         asked.concurrency, until);
    if (!result.schedule) result.limits_hit.push_back(until.ended_by());
    result.metrics["trees"] = static_cast<double>(packed.trees.size());
    result.metrics["tree_throughput_us"] = packed.busy_us;
    result.metrics["columns"] = packed.iterations;
    return result;
  };
}

EngineInfo rooted_engine() {
  return {
      .name = "rooted",
      .help =
          "trees from one root packed at its least cut (Edmonds), copied by switches where they may, in "
          "many chunks; Broadcast, Reduce",
      .policies = {kWhole, "even", "deep", "shallow", kFinish, kRates},
      .applicable = [](const Instance& instance, const EngineOptions&) { return is_rooted(instance.demand); },
      .work = [](const Demand& demand, const std::string&) { return kWorkOfSend * demand.num_deliveries(); },
      .takes_seeds = false,
      .traits = kContinuousTime,
      .most_sends =
          [](const Demand& demand) {
            const auto& destinations = demand.contributions().front().destinations;
            return destinations.size() > kMostCutDestinations ? kMostSendsOfMany : kMostSends;
          },
      .prepare = prepare_rooted};
}

}  // namespace rondo
