#pragma once

#include <vector>

#include "rondo/core/round.hpp"
#include "rondo/core/schedule.hpp"

/// The versions of rondo-topology, rondo-demand, rondo-schedule and rondo-round. A file is written as version
/// 1 unless it has something that version 1 does not know; readers take both.
namespace rondo {

inline constexpr int kNewestVersion = 2;

/// 2 with message costs, bandwidth steps or switches that add.
int version_of(const Topology& topology);
/// 2 with sums, or data of several holders.
int version_of(const Demand& demand);
/// 2 with any of these, with transfers, rates or additions among the sends, or with a bound of a partition.
int version_of(const ProvenSchedule& proven);
int version_of(const RoundRecord& record);

/// Whether the columns `transfer` and `rate_GBps` are needed.
/// Whether some data are of another tenant than 0, or of another priority than 1.
bool have_tenants(const Demand& demand);
bool have_transfers(const std::vector<Send>& sends);
bool have_rates(const std::vector<Send>& sends);

}  // namespace rondo
