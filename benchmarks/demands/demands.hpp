#pragma once

#include "table_cases.hpp"

/// Benchmark demands: data that several want. Each table stands in a file of its own.
namespace rondo::benchmarks::demands {

/// One root and all other GPUs, either way: tables broadcast and reduce.
void rooted(TableCases& cases);
/// Table mixed: pairs and multicasts of other sizes and times, drawn at random.
void mixed(TableCases& cases);
/// Table named: collectives by name and as custom demands.
void named(TableCases& cases);

}  // namespace rondo::benchmarks::demands
