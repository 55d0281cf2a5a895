#pragma once

#include <optional>

#include "rondo/core/certificate.hpp"
#include "rondo/decomp/orbits.hpp"
#include "rondo/model/deadline.hpp"
#include "rondo/model/solver.hpp"

namespace rondo {

/// Whether time cuts prove more together than one by one: some switch does not copy, all data has one source
/// and some has several destinations, and bandwidth does not change.
bool can_join_cuts(const Topology& topology, const Demand& demand);

/// Joint cuts that prove more than `least_us`; nothing where none are found, can_join_cuts() is not so or the
/// fabric is large. A linear program over time deals what links carry over ways between GPUs (and switches
/// that copy) so that as much as can be passes each of the time cuts: those around single GPUs and chassis,
/// and minimum cuts of what it deals out, as long as these are more than it has. Ways are added as its prices
/// ask for them. Equal links, by symmetry, pay the same. The end is moved by Newton steps and by halves. Work
/// is limited by counts; past `deadline` what has been found by then.
std::optional<LowerBound> find_joint_cuts(const Topology& topology, const Demand& demand,
                                          const Symmetry& symmetry, const Solver& solver, double least_us,
                                          const Deadline& deadline = {});

}  // namespace rondo
