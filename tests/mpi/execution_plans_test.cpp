#include <gtest/gtest.h>

#include <functional>

#include "plans_by_hand.hpp"
#include "rondo/core/error.hpp"
#include "rondo/execution/execute.hpp"

/// Execution plans of MSCCL++ with real bytes.
namespace rondo::execution::execution_plans_test {
namespace {

ExecuteResult run(const mscclpp::Plan& plan, double bytes, int repeat = 1) {
  const Arithmetic numbers{.number = Number::int64};
  return execute(from_plan(plan, bytes, numbers), *make_world_communicator(), {.repeat = repeat});
}

std::string refusal(const mscclpp::Plan& plan) {
  try {
    run(plan, 1000);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "accepted";
}

TEST(ExecutePlan, EveryKindOfMoveEndsAsDefined) {
  for (const mscclpp::Plan& plan : {test::exchange(), test::port_exchange(), test::read_sum(),
                                    test::switched_sum(), test::packet_sum(), test::pipelined_sum()}) {
    SCOPED_TRACE(plan.name);
    for (const double bytes : {1.0, 1000.0, 50'000.0}) EXPECT_GT(run(plan, bytes, 2).messages, 0);
  }
}

TEST(ExecutePlan, ThreadblocksOfAGroupShareTheWork) {
  mscclpp::Plan plan = test::exchange();
  for (mscclpp::Gpu& gpu : plan.gpus) {
    gpu.peers[0].push_back(gpu.peers[0].front());
    gpu.tbs.push_back(gpu.tbs[0]);
    gpu.tbs[1].channels[0] = {1};
    for (int t = 0; t < 2; ++t) {
      for (const int op : {3, 4}) {
        mscclpp::Op& move = gpu.tbs[static_cast<std::size_t>(t)].ops[static_cast<std::size_t>(op)];
        move.slice = t;
        move.num_slices = 2;
      }
    }
  }
  EXPECT_EQ(run(plan, 1000).messages, 2 * 2 * 3);
}

TEST(ExecutePlan, WaitingForEverIsExplained) {
  mscclpp::Plan plan = test::exchange();
  plan.gpus[1].tbs[0].ops.erase(plan.gpus[1].tbs[0].ops.begin() + 6);
  const std::string text = refusal(plan);
  EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
  EXPECT_NE(text.find("gpu 0 tb 0 op 7"), std::string::npos) << text;
}

TEST(ExecutePlan, WrongOutputsAreNamed) {
  mscclpp::Plan plan = test::exchange();
  plan.gpus[0].tbs[0].ops[4].dst[0].index = 1;
  EXPECT_NE(refusal(plan).find("gpu 0"), std::string::npos);
  plan = test::packet_sum();
  plan.gpus[0].tbs[0].ops.erase(plan.gpus[0].tbs[0].ops.begin());
  EXPECT_NE(refusal(plan).find("deadlock"), std::string::npos);
}

}  // namespace
}  // namespace rondo::execution::execution_plans_test
