#pragma once

#include <vector>

#include "rondo/mscclpp/plan.hpp"
#include "switch_use.hpp"

namespace rondo {

/// Adds threadblocks that let switches do `sums`, one an instance and GPU: all GPUs say that they have begun,
/// each takes its share of the sums, all say that they have ended. They say so in rounds, to the GPU that is
/// 1, 2, 4 and so on after theirs.
void add_switch_sums(mscclpp::Plan& plan, const std::vector<lowering::SwitchSum>& sums);

/// The switch channel of GPU `g` to `buffer` of `ranks`, in the GPU's list; all of them get one where they
/// have none.
int switch_channel(mscclpp::Plan& plan, int g, mscclpp::Buffer buffer, const std::vector<int>& ranks);

}  // namespace rondo
