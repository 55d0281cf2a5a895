#include "by_hand.hpp"

/// Links whose bandwidth changes.
namespace rondo::test_replay_steps {
namespace {

/// 0 -> 1: 1 GB/s, from 10 us on half of it, down from 20 to 30 us.
Fabric changing() {
  Fabric fabric(2);
  fabric.changing_link(0, 1, {{0, 1}, {10, 0.5}, {20, 0}, {30, 1}}, 2);
  return fabric;
}

TEST(ReplaySteps, BytesFlowAsTheBandwidthAllows) {
  const Topology topology = changing().build();
  const auto one = [&](double us) { return custom(topology, {part(0, us * kUs, {1})}); };
  expect_finish(topology, one(8), {send(0, 0, 0, 8, 10)}, 10);
  expect_finish(topology, one(13), {send(0, 0, 0, 16, 18)}, 18);
  expect_finish(topology, one(20), {send(0, 0, 0, 35, 37)}, 37);
  expect_finish(topology, one(20), {send(0, 0, 10, 45, 47)}, 47);
  expect_finish(topology, one(20), {send(0, 0, 25, 50, 52)}, 52);
  expect_violation(topology, one(20), {send(0, 0, 0, 20, 22)}, {"rule 1", "link 0", "35 us, not at 20 us"});
  expect_violation(topology, one(20), {send(0, 0, 25, 45, 47)}, {"rule 1", "50 us"});
}

TEST(ReplaySteps, WhatEndsAsTheLinkGoesDownIsDone) {
  const Topology topology = changing().build();
  for (const double off : {-1e-8, 0.0, 1e-8}) {
    const Demand demand = custom(topology, {part(0, (15 + off) * kUs, {1})});
    EXPECT_TRUE(replay(topology, demand, std::vector{send(0, 0, 0, 20, 22)}).valid()) << off;
    EXPECT_TRUE(replay(topology, demand, std::vector{send(0, 0, 0, 30, 32)}).valid()) << off;
    EXPECT_FALSE(replay(topology, demand, std::vector{send(0, 0, 0, 25, 27)}).valid()) << off;
  }
  const Demand more = custom(topology, {part(0, 15.001 * kUs, {1})});
  expect_violation(topology, more, {send(0, 0, 0, 20, 22)}, {"rule 1", "30.001"});
  const Demand less = custom(topology, {part(0, 14.999 * kUs, {1})});
  expect_violation(topology, less, {send(0, 0, 0, 30, 32)}, {"rule 1", "not at 30 us"});
}

TEST(ReplaySteps, ALinkThatStaysDownEndsNothing) {
  Fabric fabric(2);
  fabric.changing_link(0, 1, {{0, 1}, {10, 0}});
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  expect_finish(topology, demand, {send(0, 0, 0, 10)}, 10);
  expect_violation(topology, demand, {send(0, 0, 1, 11)}, {"rule 1", "chunk 0", "never ends"});
}

TEST(ReplaySteps, EachLinkIsMetWhenTheBytesPassIt) {
  // Bytes that leave 0 at x pass the second link at x + 5: 0.5 GB/s before x = 4, 1 until 10, then 2.
  Fabric fabric(2);
  const int sw = fabric.cut_through();
  fabric.changing_link(0, sw, {{0, 1}, {10, 2}}, 5);
  fabric.changing_link(sw, 1, {{0, 0.5}, {9, 4}}, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 12 * kUs, {1})});
  expect_finish(topology, demand, {send(0, 0, 0, 12, 17), send(0, 1, 5, 17, 18)}, 18);
  expect_violation(topology, demand, {send(0, 0, 0, 14, 19), send(0, 1, 5, 19, 20)}, {"rule 1", "12 us"});
  // Chunks that go together take the same course.
  const Demand two = custom(topology, {part(0, 8 * kUs, {1}), part(0, 4 * kUs, {1})});
  expect_finish(topology, two,
                {numbered(0, send(0, 0, 0, 12, 17)), numbered(0, send(1, 0, 0, 12, 17)),
                 numbered(0, send(0, 1, 5, 17, 18)), numbered(0, send(1, 1, 5, 17, 18))},
                18);
}

TEST(ReplaySteps, ARateFitsAtEveryInstant) {
  const Topology topology = changing().build();
  const Demand demand = custom(topology, {part(0, 5 * kUs, {1})});
  const auto rated = [](double rate, double start) {
    const double end = start + 5 / rate;
    return std::vector<Send>{numbered(0, at_rate(rate, send(0, 0, start, end, end + 2)))};
  };
  expect_finish(topology, demand, rated(0.5, 10), 22);
  expect_finish(topology, demand, rated(0.25, 0), 22);
  expect_finish(topology, demand, rated(1, 30), 37);
  expect_violation(topology, demand, rated(1, 6), {"rule 1", "link 0", "1 GB/s", "at 10 us", "0.5 GB/s"});
  expect_violation(topology, demand, rated(0.5, 11), {"rule 1", "at 20 us", "0 GB/s"});
  expect_violation(topology, demand, rated(0.5, 29), {"rule 1", "at 29 us", "0 GB/s"});
}

TEST(ReplaySteps, TransfersShareWhatThereIs) {
  Fabric fabric(3);
  fabric.changing_link(0, 1, {{0, 2}, {10, 1}});
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {1})});
  const auto sends = [](double second) {
    return std::vector<Send>{numbered(0, at_rate(1, send(0, 0, 0, 10))),
                             numbered(1, at_rate(1, send(1, 0, second, second + 10)))};
  };
  expect_finish(topology, demand, sends(0), 10);
  expect_finish(topology, demand, sends(10), 20);
  expect_finish(topology, demand, sends(1), 11);
  // Both at 0.75 GB/s fit until 10 us.
  const double end = 10 / 0.75;
  expect_violation(
      topology, demand,
      {numbered(0, at_rate(0.75, send(0, 0, 0, end))), numbered(1, at_rate(0.75, send(1, 0, 0, end)))},
      {"rule 1", "1.5 GB/s at 10 us", "1 GB/s"});
  // As fast as the link, twice.
  expect_violation(topology, demand, {send(0, 0, 0, 5), send(1, 0, 4, 9)}, {"rule 1", "chunk 1", "4 GB/s"});
}

TEST(ReplaySteps, AMessageCostPassesWhileALinkIsDown) {
  Fabric fabric(2);
  fabric.changing_link(0, 1, {{0, 1}, {10, 0}, {20, 1}}, 0, 4);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 3 * kUs, {1})});
  expect_finish(topology, demand, {send(0, 0, 0, 7)}, 7);
  expect_finish(topology, demand, {send(0, 0, 8, 23)}, 23);
  expect_finish(topology, demand, {send(0, 0, 18, 25)}, 25);
  expect_violation(topology, demand, {send(0, 0, 12, 27)}, {"rule 1", "23 us"});
}

TEST(ReplaySteps, SendsThatMeetNeedNumbers) {
  Fabric fabric(3);
  const int sw = fabric.cut_through(false);
  fabric.link(0, sw);
  fabric.link(0, sw);
  fabric.changing_link(sw, 1, {{0, 1}, {100, 2}});
  fabric.link(sw, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1, 2})});
  std::vector<Send> sends = {send(0, 0, 0, 10), send(0, 1, 0, 10), send(0, 2, 0, 10), send(0, 3, 0, 10)};
  expect_violation(topology, demand, sends, {"rule 4", "bandwidth", "need transfer numbers"});
  sends[0].transfer = sends[2].transfer = 4;
  expect_finish(topology, demand, sends, 10);
}

}  // namespace
}  // namespace rondo::test_replay_steps
