#pragma once

#include <string>
#include <vector>

#include "rondo/engines/engine.hpp"

/// The engines. `prepare_*` have the signature of `Engine`; registry.cpp names them for the command line.
namespace rondo {

/// Event-driven list scheduling in continuous time, for any demand; policies in list_policies().
PreparedEngine prepare_list(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
const std::vector<std::string>& list_policies();

/// Pairwise demand: steady-state flow, decomposed into paths, rounded to equal chunks, list-scheduled;
/// policies in flow_policies().
PreparedEngine prepare_flow(const Instance& instance, const EngineOptions& options, const Toolbox& tools);
const std::vector<std::string>& flow_policies();

/// Pairwise demand: time-expanded flow of least time (TE-CCL, section 4.1 and appendix A), then as
/// `flow`.
PreparedEngine prepare_lp(const Instance& instance, const EngineOptions& options, const Toolbox& tools);

/// The multicast MILP (TE-CCL, section 3, appendices A and F), proven optimal on its epoch grid where limits
/// allow.
PreparedEngine prepare_milp(const Instance& instance, const EngineOptions& options, const Toolbox& tools);

}  // namespace rondo
