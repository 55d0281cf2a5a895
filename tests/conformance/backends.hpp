#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "rondo/solvers/pdhg.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo {

/// Every test of the suite runs against every backend; a new backend is one more line in backends().
class SolverSuite : public ::testing::TestWithParam<std::shared_ptr<const Solver>> {
 protected:
  const Solver& solver() const { return *GetParam(); }
  /// How far a value of this size may be off.
  double within(double value = 0) const { return solver().tolerance() * (1 + std::abs(value)); }
  static void expect_stopped(const Solution& solution) {
    EXPECT_TRUE(solution.status == SolveStatus::no_solution || solution.status == SolveStatus::feasible)
        << to_string(solution.status);
  }
};

using Backends = std::vector<std::shared_ptr<const Solver>>;

inline Backends backends() {
  static const std::unique_ptr<Communicator> alone = make_local_communicator();
  return {make_clp_solver(), make_cbc_solver(), make_pdhg_solver(*alone)};
}

inline auto all_backends() {
  return ::testing::ValuesIn(backends());
}

inline auto backends_with_integers(bool supported) {
  Backends chosen = backends();
  std::erase_if(chosen, [&](const auto& solver) { return solver->supports_integer() != supported; });
  return ::testing::ValuesIn(chosen);
}

inline std::string backend_name(const ::testing::TestParamInfo<std::shared_ptr<const Solver>>& info) {
  return info.param->name();
}

/// A row over consecutive columns, from column 0.
inline int add_row(LinearModel& model, double lower, double upper, const std::vector<double>& coefficients) {
  const int row = model.add_row(lower, upper);
  for (std::size_t j = 0; j < coefficients.size(); ++j) {
    if (coefficients[j] != 0) model.add_entry(row, static_cast<int>(j), coefficients[j]);
  }
  return row;
}

}  // namespace rondo
