#pragma once

#include "rondo/flows/column_loop.hpp"
#include "rondo/model/toolbox.hpp"

namespace rondo {

/// Collective. The steady-state flow of unicast demand by columns. Its prices of the links are a metric that
/// proves it within the gap, where no bandwidth is shared. Throws Error(unavailable) where a limit left it
/// without a flow.
FlowByColumns steady_flow_by_columns(const Instance& instance, const ColumnOptions& options,
                                     const MakeColumnMaster& make_master, const Communicator& communicator,
                                     const std::function<void(const ColumnProgress&)>& progress = {});

/// Collective. A flow over time on the instance's grid, where its epochs suffice for one; else without
/// entries. figures: "theta", how many times what they can links carry; a lower bound on it where that is too
/// much.
FlowByColumns timed_flow_by_columns(const Instance& instance, const ColumnOptions& options,
                                    const MakeColumnMaster& make_master, const Communicator& communicator,
                                    const std::function<void(const ColumnProgress&)>& progress = {});

}  // namespace rondo
