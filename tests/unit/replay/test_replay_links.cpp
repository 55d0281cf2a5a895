#include <limits>

#include "by_hand.hpp"

/// Rules 1, 2, 6 and 7: links and GPUs.
namespace rondo::test_replay_links {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// 0 -> 1 -> 2, 1 GB/s, 0.5 us; one chunk of 10 us from 0 to 2.
struct Line {
  Topology topology = [] {
    Fabric fabric(3);
    fabric.link(0, 1, 1, 0.5);
    fabric.link(1, 2, 1, 0.5);
    fabric.link(1, 0, 1, 0.5);
    return fabric.build();
  }();
  Demand demand = custom(topology, {part(0, 10 * kUs, {2})});
  Send first = send(0, 0, 0, 10, 10.5);
  Send second = send(0, 1, 10.5, 20.5, 21);
};

TEST(ReplayTimes, CompareWithinTheTolerance) {
  EXPECT_TRUE(times_equal(0, 0.9e-6));
  EXPECT_FALSE(times_equal(0, 1.1e-6));
  EXPECT_TRUE(times_equal(1e9, 1e9 + 0.9));
  EXPECT_FALSE(times_equal(1e9, 1e9 + 1.1));
  EXPECT_FALSE(times_equal(kNaN, kNaN));
}

TEST(ReplayRule1, EndAndArrivalFollowFromTheStart) {
  Line line;
  expect_finish(line.topology, line.demand, {line.first, line.second}, 21);
  Send near = line.second;
  near.end_us += 0.9e-6;
  EXPECT_TRUE(replay(line.topology, line.demand, std::vector{line.first, near}).valid());
  for (const double error : {-0.1, 0.1, 1e-5}) {
    Send wrong = line.second;
    wrong.end_us += error;
    expect_violation(line.topology, line.demand, {line.first, wrong},
                     {"rule 1", "chunk 0", "link 1", "20.5 us"});
    wrong = line.second;
    wrong.arrival_us += error;
    expect_violation(line.topology, line.demand, {line.first, wrong},
                     {"rule 1", "chunk 0", "link 1", "21 us"});
  }
}

TEST(ReplayRule1, RefusesMalformedSends) {
  Line line;
  const auto refuse = [&](auto change, const std::string& word) {
    Send wrong = line.second;
    change(wrong);
    expect_violation(line.topology, line.demand, {line.first, wrong}, {word});
  };
  refuse([](Send& s) { s.chunk = ChunkId{1}; }, "chunk 1 does not exist");
  refuse([](Send& s) { s.chunk = ChunkId{-1}; }, "chunk -1 does not exist");
  refuse([](Send& s) { s.link = LinkId{3}; }, "link 3 does not exist");
  refuse([](Send& s) { s.link = LinkId{-7}; }, "link -7 does not exist");
  refuse([](Send& s) { s.op = SendOp::reduce; }, "not copy");
  for (const double t : {kNaN, kInfinity, -kInfinity, -1.0}) {
    refuse([t](Send& s) { s.start_us = t; }, "finite and not negative");
    refuse([t](Send& s) { s.end_us = t; }, "finite and not negative");
    refuse([t](Send& s) { s.arrival_us = t; }, "finite and not negative");
  }
}

TEST(ReplayRule1, ALinkCarriesOneSendAtATime) {
  Fabric fabric(2);
  fabric.link(0, 1, 1, 3);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1}), part(0, 5 * kUs, {1})});
  // The latency does not occupy the link.
  expect_finish(topology, demand, {send(0, 0, 0, 10, 13), send(1, 0, 10, 15, 18)}, 18);
  expect_finish(topology, demand, {send(0, 0, 5, 15, 18), send(1, 0, 0, 5, 8)}, 18);
  EXPECT_TRUE(
      replay(topology, demand, std::vector{send(0, 0, 0, 10, 13), send(1, 0, 10 - 5e-7, 15, 18)}).valid());
  expect_violation(topology, demand, {send(0, 0, 0, 10, 13), send(1, 0, 9.9, 14.9, 17.9)},
                   {"rule 1", "chunk 1", "link 0", "until 10 us"});
  // One inside the other, and the same send twice.
  expect_violation(topology, demand, {send(0, 0, 0, 10, 13), send(1, 0, 2, 7, 10)}, {"rule 1"});
  expect_violation(topology, demand, {send(0, 0, 0, 10, 13), send(0, 0, 0, 10, 13), send(1, 0, 10, 15, 18)},
                   {"rule 1", "chunk 0"});
}

TEST(ReplayRule1, ALongSendBlocksEveryLaterOne) {
  Fabric fabric(2);
  fabric.link(0, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 100 * kUs, {1}), part(0, kUs, {1}), part(0, kUs, {1})});
  expect_violation(topology, demand, {send(0, 0, 0, 100), send(1, 0, 100, 101), send(2, 0, 50, 51)},
                   {"rule 1", "chunk 2", "until 100 us"});
}

TEST(ReplayRule1, SendsShorterThanTheToleranceDoNotShareAnInstant) {
  Fabric fabric(2);
  fabric.link(0, 1);
  const Topology topology = fabric.build();
  const std::vector<Contribution> parts(10, part(0, 4e-7 * kUs, {1}));
  const Demand demand = custom(topology, parts);
  std::vector<Send> sends;
  for (int c = 0; c < 10; ++c) sends.push_back(send(c, 0, 0, 4e-7));
  expect_violation(topology, demand, sends, {"rule 1", "occupied"});
  for (int c = 0; c < 10; ++c) sends[static_cast<std::size_t>(c)] = send(c, 0, c * 4e-7, (c + 1) * 4e-7);
  expect_finish(topology, demand, sends, 10 * 4e-7);
}

TEST(ReplayRule2, AGpuSendsWhatItHolds) {
  Line line;
  expect_violation(line.topology, line.demand, {line.first, send(0, 1, 10, 20, 20.5)},
                   {"rule 2", "chunk 0", "link 1", "GPU 1", "10.5 us"});
  expect_violation(line.topology, line.demand, {line.second}, {"rule 2", "GPU 1 never holds"});
  // Waiting in a GPU is free.
  expect_finish(line.topology, line.demand, {line.first, send(0, 1, 50, 60, 60.5)}, 60.5);
}

TEST(ReplayRule2, TheOriginHoldsItsChunkFromReady) {
  Line line;
  const Demand demand = custom(line.topology, {part(0, 10 * kUs, {1}, 4)});
  expect_finish(line.topology, demand, {send(0, 0, 4, 14, 14.5)}, 14.5);
  expect_violation(line.topology, demand, {send(0, 0, 3.9, 13.9, 14.4)}, {"rule 2", "GPU 0", "from 4 us"});
}

TEST(ReplayRule2, TheEarliestArrivalCounts) {
  Fabric fabric(3);
  fabric.link(0, 1, 1, 100);  // a slow way round
  fabric.link(0, 1, 1, 0);
  fabric.link(1, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {1, 2})});
  const Send slow = send(0, 0, 0, 1, 101);
  expect_finish(topology, demand, {slow, send(0, 1, 7, 8), send(0, 2, 8, 9)}, 9);
  expect_violation(topology, demand, {slow, send(0, 1, 7, 8), send(0, 2, 7, 8)}, {"rule 2", "from 8 us"});
}

TEST(ReplayRule2, RedundantSendsAreLegal) {
  Fabric fabric(3);
  const int there = fabric.link(0, 1);
  const int back = fabric.link(1, 0);
  const int onward = fabric.link(0, 2);
  const int relay = fabric.link(1, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {2})});
  // To a GPU that does not want it, back to its origin, twice to its destination, on two links at once.
  expect_finish(topology, demand,
                {send(0, there, 0, 1), send(0, back, 1, 2), send(0, onward, 0, 1), send(0, relay, 1, 2)}, 1);
  // What comes back does not change what the origin may do.
  expect_finish(topology, demand, {send(0, there, 0, 1), send(0, back, 1, 2), send(0, onward, 1.5, 2.5)},
                2.5);
}

TEST(ReplayCausality, SendsAtOneInstantNeedACause) {
  // 1 and 2 pass a chunk to each other that neither has got: too short for times alone to tell.
  Fabric fabric(3);
  fabric.link(0, 1);
  fabric.link(1, 2);
  fabric.link(2, 1);
  const Topology topology = fabric.build();
  const double tiny = 1e-9;
  const Demand demand = custom(topology, {part(0, tiny * kUs, {1, 2})});
  expect_violation(topology, demand, {send(0, 1, 5, 5 + tiny), send(0, 2, 5, 5 + tiny)},
                   {"rule 2", "never holds"});
  // An arrival after the circle does not support it.
  expect_violation(topology, demand,
                   {send(0, 1, 5, 5 + tiny), send(0, 2, 5, 5 + tiny), send(0, 0, 6, 6 + tiny)},
                   {"rule 2", "GPU 1"});
  // One at the same instant does, also through a chain of sends whose stated times all are equal.
  EXPECT_TRUE(
      replay(topology, demand, std::vector{send(0, 1, 5, 5), send(0, 2, 5, 5), send(0, 0, 5, 5)}).valid());
}

TEST(ReplayCausality, AChainAtOneInstantIsOrderedByItsCauses) {
  const int n = 6;
  Fabric fabric(n);
  for (int g = n - 1; g > 0; --g) fabric.link(g - 1, g);  // the last hop has the lowest number
  const Topology topology = fabric.build();
  const double tiny = 1e-10;
  const Demand demand = custom(topology, {part(0, tiny * kUs, {n - 1})});
  std::vector<Send> sends;
  for (int l = 0; l < n - 1; ++l) sends.push_back(send(0, l, 3, 3 + tiny));
  EXPECT_TRUE(replay(topology, demand, sends).valid());
  sends.pop_back();  // the hop from the origin
  expect_violation(topology, demand, sends, {"rule 2", "never holds"});
}

TEST(ReplayCausality, ACircleDoesNotMoveAChunkBackInTime) {
  Fabric fabric(4);
  fabric.link(0, 1);
  fabric.link(1, 2);
  fabric.link(2, 1);
  fabric.link(1, 3);
  const Topology topology = fabric.build();
  const double tiny = 1e-9;
  const double less = 0.9e-6;
  const Demand demand = custom(topology, {part(0, tiny * kUs, {3}, 5)});
  const auto at = [&](int link, double start) { return send(0, link, start, start + tiny); };
  EXPECT_TRUE(
      replay(topology, demand, std::vector{at(0, 5), at(1, 5), at(2, 5 - less), at(3, 5 - less)}).valid());
  expect_violation(topology, demand, {at(0, 5), at(1, 5), at(2, 5 - less), at(3, 5 - 2 * less)},
                   {"rule 2", "link 3"});
}

TEST(ReplayRule6, SharedBandwidthLimitsTheSum) {
  Fabric fabric(3);
  fabric.link(0, 1, 1);
  fabric.link(0, 2, 2);
  fabric.share({0, 1}, 2.5);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {2})});
  expect_finish(topology, demand, {send(0, 0, 0, 10), send(1, 1, 10, 15)}, 15);
  expect_finish(topology, demand, {send(0, 0, 5, 15), send(1, 1, 0, 5)}, 15);
  expect_violation(topology, demand, {send(0, 0, 0, 10), send(1, 1, 9.5, 14.5)},
                   {"rule 6", "chunk 1", "link 1", "9.5 us", "'nic'", "3 GB/s", "2.5 GB/s"});
  Fabric wide(3);
  wide.link(0, 1, 1);
  wide.link(0, 2, 2);
  wide.share({0, 1}, 3);
  expect_finish(wide.build(), demand, {send(0, 0, 0, 10), send(1, 1, 0, 5)}, 10);
}

TEST(ReplayRule6, TheRateIsTheOneThatASwitchLowered) {
  for (const double limit : {2.0, 1.9}) {
    Fabric fabric(3);
    const int sw = fabric.cut_through();
    fabric.link(0, sw, 5);
    fabric.link(sw, 1, 1);
    fabric.link(0, 2, 1);
    fabric.share({0, 2}, limit);
    const Topology topology = fabric.build();
    const Demand demand = custom(topology, {part(0, 10 * kUs, {1, 2})});
    const std::vector<Send> sends = {send(0, 0, 0, 10), send(0, 1, 0, 10), send(0, 2, 0, 10)};
    if (limit == 2.0) {
      expect_finish(topology, demand, sends, 10);
    } else {
      expect_violation(topology, demand, sends, {"rule 6", "2 GB/s"});
    }
  }
}

TEST(ReplayRule7, EveryDestinationIsServed) {
  Line line;
  expect_violation(line.topology, line.demand, {line.first}, {"rule 7", "chunk 0", "GPU 2"});
  expect_violation(line.topology, line.demand, {}, {"rule 7", "chunk 0", "GPU 2"});
  const Demand both = custom(line.topology, {part(0, 10 * kUs, {1, 2})});
  expect_finish(line.topology, both, {line.first, line.second}, 21);
  // What arrives where nobody wants it does not count, nor does a second arrival.
  const Demand near = custom(line.topology, {part(0, 10 * kUs, {1})});
  expect_finish(line.topology, near, {line.first, line.second, send(0, 0, 30, 40, 40.5)}, 10.5);
}

TEST(ReplayRule7, ChunksOfAContributionAreDeliveredOneByOne) {
  Line line;
  const Demand demand = line.demand.with_chunks(2);
  expect_finish(
      line.topology, demand,
      {send(0, 0, 0, 5, 5.5), send(1, 0, 5, 10, 10.5), send(0, 1, 5.5, 10.5, 11), send(1, 1, 10.5, 15.5, 16)},
      16);
  expect_violation(line.topology, demand,
                   {send(0, 0, 0, 5, 5.5), send(1, 0, 5, 10, 10.5), send(0, 1, 5.5, 10.5, 11)},
                   {"rule 7", "chunk 1", "GPU 2"});
}

TEST(Replay, NamesTheFirstViolationInTime) {
  Line line;
  Send late = line.second;
  late.arrival_us = 30;
  Send early = line.first;
  early.end_us = 11;
  expect_violation(line.topology, line.demand, {late, early}, {"rule 1", "link 0"});
}

}  // namespace
}  // namespace rondo::test_replay_links
