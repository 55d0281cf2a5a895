#pragma once

#include <optional>
#include <vector>

#include "partition_quotient.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// The partition, not completed, whose sets' bandwidths in, less `GBps` a set, sum to the least: one of a
/// lesser quotient than `GBps`, if there is any, where switches may overlap. Nothing where `deadline` is over
/// before.
std::optional<std::vector<int>> dilworth_truncation(const PartitionProblem& problem, double GBps,
                                                    const Deadline& deadline);

}  // namespace rondo
