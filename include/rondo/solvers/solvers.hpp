#pragma once

#include <memory>

#include "rondo/model/solver.hpp"

namespace rondo {

/// COIN-OR CLP, continuous models.
std::shared_ptr<const Solver> make_clp_solver();
/// COIN-OR CBC, integer models.
std::shared_ptr<const Solver> make_cbc_solver();

}  // namespace rondo
