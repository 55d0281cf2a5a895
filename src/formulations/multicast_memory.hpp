#pragma once

#include <vector>

#include "multicast_layout.hpp"
#include "rondo/model/linear_model.hpp"

/// Memory of GPUs for what they only pass on (FORMATS.md 3, rule 12; TE-CCL, appendix B). Rows, for a chunk c
/// that GPU g drops, epochs k and the instants i of g, at which chunks may begin to fill its memory:
///
// clang-format off
///   kept(c, g, k) = held(c, g, k - 1) - dropped(c, g, k)                             TE-CCL's X is `dropped`
///   there(c, g, i) >= kept(c, g, k + 1) + sum of the starts of c that fill the memory of g at i, in epoch k
///   there(c, g, i) >= sum over k' of start(c, x, k') that leave g at i                for each route x from g
///   sum over c of there(c, g, i) <= memory of g in chunks
// clang-format on
///
/// A chunk that comes while g keeps it serves nothing, so that the first sum loses no schedule.
namespace rondo {

/// Columns behind all others of the layout.
void add_memory_columns(const MulticastLayout& layout, LinearModel& model);
void add_memory_rows(const MulticastLayout& layout, LinearModel& model);

/// Sets held, dropped and there of what GPUs drop, from the starts: each arrival is kept to its last use.
void set_memory(const MulticastLayout& layout, std::vector<double>& x);

}  // namespace rondo
