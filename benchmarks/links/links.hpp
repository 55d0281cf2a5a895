#pragma once

#include "table_cases.hpp"

/// Benchmark links: links as they are. Each table stands in a file of its own.
namespace rondo::benchmarks::links {

/// Fat trees whose uplinks are faster than the links of GPUs, and a dragonfly.
void fat_trees(TableCases& cases);
/// Fabrics of TACCL, whose messages cost, with and without joining.
void message_costs(TableCases& cases);
/// Schedules for a fabric whose links have slowed down: anew, and from the one made before.
void drift(TableCases& cases);
/// AllGather over switches that may copy, and over the same ones that may not.
void copies(TableCases& cases);
/// A link of ndv2-2 that changes in the middle of AllGather: schedules that know it, and one that does not.
void steps(TableCases& cases);

}  // namespace rondo::benchmarks::links
