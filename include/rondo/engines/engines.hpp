#pragma once

#include <string>
#include <vector>

#include "rondo/engines/engine.hpp"

/// The engines. `prepare_*` have the signature of `Engine`; registry.cpp names them for the command line.
namespace rondo {

/// Event-driven list scheduling in continuous time, for any demand; policies in list_policies().
PreparedEngine prepare_list(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
const std::vector<std::string>& list_policies();

/// Plain AllGather (is_plain_allgather): list scheduling with a queue of chunks a hop, one decision for all
/// automorphisms of a free group (find_free_group) where there is one, unless options.symmetry is off.
/// Policies in queue_policies().
PreparedEngine prepare_queue(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
const std::vector<std::string>& queue_policies();
/// The work of a schedule that makes its decisions for all automorphisms at once, as a part of that of a
/// schedule that makes them one by one: a decision costs little then, what remains is to write the images. 1
/// where symmetry is off or none is found.
double queue_decisions(const Instance& instance, const EngineOptions& options);

/// Plain AllGather (is_plain_allgather): spanning out-trees packed exactly at the greatest rate that whole
/// chunks allow, then list-scheduled along the trees.
PreparedEngine prepare_trees(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
bool applicable_to_trees(const Instance& instance);

/// Unicast demand: steady-state flow, decomposed into paths, rounded to equal chunks, list-scheduled;
/// policies in flow_policies().
PreparedEngine prepare_flow(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
const std::vector<std::string>& flow_policies();

/// Unicast demand: time-expanded flow of least time (TE-CCL, section 4.1 and appendix A), then as
/// `flow`.
PreparedEngine prepare_lp(const Instance& instance, const EngineOptions& options, const Toolbox& tools);

/// Data of one GPU that several want all of (is_rooted): out-trees packed at the least cut, list-scheduled.
PreparedEngine prepare_rooted(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
/// Whether all data, in equal parts, starts at one GPU and is wanted by the same others: a Broadcast.
bool is_rooted(const Demand& demand);

/// The multicast MILP (TE-CCL, section 3, appendices A and F), proven optimal on its epoch grid where limits
/// allow.
PreparedEngine prepare_milp(const Instance& instance, const EngineOptions& options, const Toolbox& tools);

}  // namespace rondo
