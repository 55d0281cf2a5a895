#pragma once

#include <optional>

#include "rondo/core/certificate.hpp"
#include "rondo/decomp/orbits.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// Prices over time that prove more than `least_us` for unicast demand; nothing where none are found or
/// bandwidth changes. They are the duals of a maximum concurrent flow over time in which equal links, by
/// symmetry, pay the same. Periods begin at sums of latencies and message costs, from the start on and back
/// from the end, so that none is rounded where these are few; Newton steps move the end. The work is limited
/// by counts; past `deadline` what has been found by then.
std::optional<LowerBound> find_prices(const Topology& topology, const Demand& demand,
                                      const Symmetry& symmetry, const MakeColumnMaster& make_master,
                                      double least_us, const Deadline& deadline = {});

}  // namespace rondo
