#pragma once

#include <vector>

#include "rondo/model/satisfiability.hpp"

namespace rondo {

/// A totalizer (Bailleux and Boufkhad, CP 2003), cut off: the i-th of the variables returned (from 0) is true
/// where more than i of `inputs` are. There are at most `most` of them; what is beyond counts as `most`.
std::vector<int> count_true(Cnf& cnf, std::vector<int> inputs, int most);

}  // namespace rondo
