#include <gtest/gtest.h>

#include <cmath>

#include "pdhg_bound.hpp"
#include "pdhg_rules.hpp"

namespace rondo::test_pdhg_rules {
namespace {

PdhgResiduals at_the_edge() {
  PdhgResiduals r;
  r.bound_norm = 3;
  r.cost_norm = 1;
  r.primal = 0.25 * (1 + 3);
  r.dual = 0.25 * (1 + 1);
  r.primal_objective = 2;
  r.dual_objective = 1;  // gap 1 = 0.25 (1 + 2 + 1)
  return r;
}

TEST(PdhgRules, OptimalUpToTheEdgeOfEveryTolerance) {
  EXPECT_TRUE(is_optimal(at_the_edge(), 0.25));
  for (double PdhgResiduals::*residual : {&PdhgResiduals::primal, &PdhgResiduals::dual}) {
    PdhgResiduals beyond = at_the_edge();
    beyond.*residual = std::nextafter(beyond.*residual, 10);
    EXPECT_FALSE(is_optimal(beyond, 0.25));
  }
  PdhgResiduals beyond = at_the_edge();
  beyond.primal_objective += 0.01;
  EXPECT_FALSE(is_optimal(beyond, 0.25));
  beyond = at_the_edge();
  beyond.dual_objective = std::nan("");
  EXPECT_FALSE(is_optimal(beyond, 0.25));
}

TEST(PdhgRules, RestartsAfterDecay) {
  PdhgRun run{.first = 1, .previous = 0.3, .now = 0.25, .steps = 10, .total_steps = 1000};
  EXPECT_FALSE(must_restart(run));  // falling, not yet to a fifth
  run.now = 0.2;
  EXPECT_TRUE(must_restart(run));
  run.now = 0.4;  // below half, and grows
  EXPECT_TRUE(must_restart(run));
  run.now = 0.6;
  EXPECT_FALSE(must_restart(run));
  run.steps = 360;
  EXPECT_TRUE(must_restart(run));
  run.steps = 359;
  EXPECT_FALSE(must_restart(run));
}

TEST(PdhgRules, ThePrimalWeightFollowsTheDistances) {
  PrimalWeight weight(1);
  weight.update(1, 100);
  EXPECT_NEAR(weight.value(), 100, 1);  // one step of the controller goes all the way but for its margin
  weight.update(0, 5);
  weight.update(1, kInfinity);
  EXPECT_NEAR(weight.value(), 100, 1);
  weight.update(1e-9, 1);
  EXPECT_EQ(weight.value(), 1e6);  // and no further
  EXPECT_EQ(PrimalWeight(1e-9).value(), 1e-6);
}

TEST(PdhgRules, RaysNeedAGainThatOutweighsTheirViolation) {
  EXPECT_TRUE(is_certificate(1, 1e-8));
  EXPECT_FALSE(is_certificate(1, 1.1e-8));
  EXPECT_FALSE(is_certificate(0, 0));
}

TEST(PdhgBound, RowsImplyBounds) {
  // 2a - b <= 4 and b + c = 3 with a, c >= 0 and b free: b >= -4 by the first row, then b <= 3 and c <= 7 by
  // the second, and in a second sweep a <= 3.5.
  LinearModel model;
  model.add_column(0, kInfinity, 1);
  model.add_column(-kInfinity, kInfinity, 0);
  model.add_column(0, kInfinity, 0);
  model.add_row(-kInfinity, 4);
  model.add_row(3, 3);
  model.add_entry(0, 0, 2);
  model.add_entry(0, 1, -1);
  model.add_entry(1, 1, 1);
  model.add_entry(1, 2, 1);
  const ColumnBounds bounds = implied_bounds(model, kInfinity);
  EXPECT_NEAR(bounds.lower[1], -4, 1e-6);
  EXPECT_NEAR(bounds.upper[1], 3, 1e-6);
  EXPECT_NEAR(bounds.upper[2], 7, 1e-6);
  EXPECT_NEAR(bounds.upper[0], 3.5, 1e-6);
  EXPECT_GE(bounds.upper[0], 3.5);  // never cut off
  // Together with a <= 2, a solution of cost 2 being known, nothing changes for the others.
  const ColumnBounds below = implied_bounds(model, 2);
  EXPECT_NEAR(below.upper[0], 2, 1e-6);
  EXPECT_NEAR(below.upper[2], 7, 1e-6);
}

}  // namespace
}  // namespace rondo::test_pdhg_rules
