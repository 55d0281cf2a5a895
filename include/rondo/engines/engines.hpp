#pragma once

#include <string>
#include <vector>

#include "rondo/engines/engine.hpp"

/// The engines. `prepare_*` have the signature of `Engine`; registry.cpp names them for the command line.
namespace rondo {

/// Event-driven list scheduling in continuous time, for any demand; policies in list_policies().
PreparedEngine prepare_list(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
const std::vector<std::string>& list_policies();

/// AllGather of equal parts on topologies without shared bandwidth: list scheduling with a queue of chunks a
/// hop; `lift` makes one decision for all translations of the topology, where there are any. Policies of both
/// in lift_policies().
PreparedEngine prepare_queue(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
PreparedEngine prepare_lift(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
const std::vector<std::string>& lift_policies();
/// Whether the two engines take it.
bool is_plain_allgather(const Instance& instance);
/// What `lift` goes by: options.translations, or else those that it finds; the identity alone where symmetry
/// is off or neither engine takes the instance.
std::shared_ptr<const Translations> translations_of(const Instance& instance, const EngineOptions& options);

/// AllGather of equal parts on topologies without shared bandwidth: spanning out-trees packed exactly at the
/// greatest rate that whole chunks allow, then list-scheduled along the trees.
PreparedEngine prepare_trees(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
bool applicable_to_trees(const Instance& instance);

/// Unicast demand: steady-state flow, decomposed into paths, rounded to equal chunks, list-scheduled;
/// policies in flow_policies().
PreparedEngine prepare_flow(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
const std::vector<std::string>& flow_policies();

/// Unicast demand: time-expanded flow of least time (TE-CCL, section 4.1 and appendix A), then as
/// `flow`.
PreparedEngine prepare_lp(const Instance& instance, const EngineOptions& options, const Toolbox& tools);

/// The multicast MILP (TE-CCL, section 3, appendices A and F), proven optimal on its epoch grid where limits
/// allow.
PreparedEngine prepare_milp(const Instance& instance, const EngineOptions& options, const Toolbox& tools);

}  // namespace rondo
