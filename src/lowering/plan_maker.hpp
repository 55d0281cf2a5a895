#pragma once

#include <vector>

#include "plan_messages.hpp"
#include "rondo/mscclpp/plan.hpp"
#include "switch_use.hpp"

namespace rondo {

/// The operations for the steps of a program, and for what switches do besides: `multicasts` are the sends
/// that they may make of one. `node_of`: one a GPU. Throws Error(unavailable) where no message has the sizes
/// that the options ask for. The plan is not checked.
mscclpp::Plan make_plan(const lowering::Lowered& lowered, const std::vector<int>& node_of,
                        const lowering::MulticastSteps& multicasts, const PlanOptions& options,
                        Landing landing = Landing::in_place);

}  // namespace rondo
