#pragma once

#include <vector>

#include "rondo/model/toolbox.hpp"

namespace rondo {

/// What the parts of a flow come to together, without entries: the worst status, the greatest objective,
/// finish, iterations and sizes. A bound of a part is none of the whole, which has none.
SolvedFlow combined_figures(const std::vector<SolvedFlow>& parts);

}  // namespace rondo
