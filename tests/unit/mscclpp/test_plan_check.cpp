#include <gtest/gtest.h>

#include "plans_by_hand.hpp"
#include "rondo/mscclpp/check.hpp"

/// What the checker accepts and refuses, and why.
namespace rondo::test::test_plan_check {
namespace {

std::string findings(const Plan& plan, bool with_caps = true) {
  std::string text;
  for (const mscclpp::Finding& finding : mscclpp::check(plan, with_caps).findings)
    text += finding.where + ": " + finding.what + "\n";
  return text;
}

void expect_found(const std::string& part, const Plan& plan) {
  const std::string text = findings(plan);
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

std::vector<Op>& ops(Plan& plan, std::size_t g = 0, std::size_t t = 0) {
  return plan.gpus[g].tbs[t].ops;
}

void erase(Plan& plan, std::size_t op, std::size_t g = 0, std::size_t t = 0) {
  ops(plan, g, t).erase(ops(plan, g, t).begin() + static_cast<std::ptrdiff_t>(op));
}

TEST(PlanCheck, PlansByHandAreRight) {
  for (const Plan& plan :
       {exchange(), port_exchange(), read_sum(), switched_sum(), packet_sum(), pipelined_sum()}) {
    EXPECT_EQ(findings(plan), "") << plan.name;
    EXPECT_TRUE(mscclpp::check(plan).knows_result);
  }
}

TEST(PlanCheck, Structure) {
  Plan plan = exchange();
  ops(plan)[3].dst[0].id = 1;
  expect_found("gpu 0 tb 0 op 3: buffer_id is 1, but the threadblock has 1", plan);
  plan = exchange();
  ops(plan)[3].src[0].index = 1;
  expect_found("chunks 1 to 1 of buffer i of gpu 0, which has 1", plan);
  plan = exchange();
  ops(plan)[6].channels = {1};
  expect_found("channel_ids has 1", plan);
  plan = exchange();
  ops(plan)[3].type = OpType::put_with_signal;
  expect_found("on memory channels the executor leaves the signal out", plan);
  plan = exchange();
  ops(plan)[3].type = OpType::put_packets;
  expect_found("needs the protocol LL", plan);
  plan = exchange();
  plan.gpus[1].output_chunks = 3;
  expect_found("needs a multiple of 2", plan);
  plan = switched_sum();
  plan.gpus[1].groups.clear();
  plan.gpus[1].tbs[0].channels[2].clear();
  expect_found("which has no such channel", plan);
}

TEST(PlanCheck, Caps) {
  Plan plan = exchange();
  ops(plan).insert(ops(plan).end(), 60, nop());
  expect_found("68 operations of a threadblock; the executor of MSCCL++ takes at most 64", plan);
  EXPECT_EQ(findings(plan, false), "");
  plan = exchange();
  plan.gpus[0].peers[0].assign(17, 1);
  plan.gpus[0].tbs[0].channels[0] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  expect_found("17 memory channels of a threadblock", plan);
}

TEST(PlanCheck, Pairing) {
  Plan plan = exchange();
  erase(plan, 7, 1);
  expect_found("is signalled 2 times, but waited on 1", plan);
  plan = pipelined_sum();
  ops(plan, 0, 1)[0].ops.erase(ops(plan, 0, 1)[0].ops.begin());
  expect_found("semaphore 0 is released 2 times, but acquired 0", plan);
  plan = exchange();
  plan.gpus[0].tbs.push_back({.channels = {std::vector{0}, {}, {}}, .ops = {on_channel(OpType::signal)}});
  expect_found("signalled by several threadblocks", plan);
  plan = exchange();
  ops(plan).push_back({.type = OpType::barrier, .barrier = 0, .num_tbs = 2});
  expect_found("barrier 0 is for 2 threadblocks, 1 come", plan);
}

TEST(PlanCheck, Deadlocks) {
  Plan plan = exchange();
  for (std::size_t g = 0; g < 2; ++g) {
    std::swap(ops(plan, g)[6], ops(plan, g)[7]);
    ops(plan, g).insert(ops(plan, g).begin() + 7, nop());
  }
  expect_found("waits for itself", plan);
}

TEST(PlanCheck, ThreadsOfABlockAreOrderedByNopsAlone) {
  Plan plan = exchange();
  erase(plan, 5);
  expect_found("may end before this has come to it", plan);
  plan = read_sum();
  erase(plan, 2, 1);
  expect_found("gpu 1 tb 0 op 2: uses memory of gpu 0, which may not have begun", plan);
}

TEST(PlanCheck, RelaxedSignalsShowNoData) {
  Plan plan = exchange();
  // The other GPU reads what came: only a signal that is not relaxed shows it.
  plan.gpus[1].scratch_chunks = 1;
  ops(plan, 1).push_back(nop());
  ops(plan, 1).push_back(
      {.type = OpType::copy, .src = {local(Buffer::output, 0)}, .dst = {local(Buffer::scratch, 0)}});
  EXPECT_EQ(findings(plan), "");
  ops(plan, 0)[6].type = OpType::relaxed_signal;
  expect_found("gpu 1 tb 0 op 9: does not wait for gpu 0 tb 0 op 3", plan);
}

TEST(PlanCheck, PortsReadUntilTheyAreFlushed) {
  Plan plan = port_exchange();
  ops(plan)[3].type = OpType::put_with_signal;
  expect_found("may end before the port has read all of it", plan);
  ops(plan).push_back(on_channel(OpType::flush, ChannelType::port));
  EXPECT_EQ(findings(plan), "");
}

TEST(PlanCheck, PacketsAreWrittenOnce) {
  Plan plan = packet_sum();
  ops(plan)[0].dst[0].index = 1;
  expect_found("its reader cannot tell them apart", plan);
  plan = packet_sum();
  erase(plan, 0);
  expect_found("waits for packets that nobody writes", plan);
}

TEST(PlanCheck, Results) {
  Plan plan = exchange();
  ops(plan, 0)[4].dst[0].index = 1;
  EXPECT_NE(findings(plan), "");
  plan = read_sum();
  for (Gpu& gpu : plan.gpus) gpu.tbs[0].ops[3].src.pop_back();
  expect_found("it needs at least 2", plan);
  plan = pipelined_sum();
  for (std::size_t g = 0; g < 2; ++g) ops(plan, g, 1)[0].ops[2].src[0].buffer = Buffer::input;
  EXPECT_EQ(findings(plan), "");  // adds its input, not the copy of it
  for (std::size_t g = 0; g < 2; ++g) ops(plan, g, 1)[0].ops[2].src[1].buffer = Buffer::input;
  expect_found("holds the wrong data", plan);
}

}  // namespace
}  // namespace rondo::test::test_plan_check
