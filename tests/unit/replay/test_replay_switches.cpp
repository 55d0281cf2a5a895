#include "by_hand.hpp"

/// Rules 3, 4 and 5: switches.
namespace rondo::test_replay_switches {
namespace {

/// 0 -> switch -> {1, 2}: in at 2 GB/s after 0.5 us, out at 1 GB/s after 0.25 us; a chunk of 10 us at 1 GB/s.
Fabric star(Fabric fabric, int sw) {
  fabric.link(0, sw, 2, 0.5);
  fabric.link(sw, 1, 1, 0.25);
  fabric.link(sw, 2, 2, 0.25);
  return fabric;
}

Topology cut_through_star(bool multicast = true) {
  Fabric fabric(3);
  const int sw = fabric.cut_through(multicast);
  return star(fabric, sw).build();
}

Topology storing_star(double buffer_bytes, bool multicast = true) {
  Fabric fabric(3);
  const int sw = fabric.store_and_forward(buffer_bytes, multicast);
  return star(fabric, sw).build();
}

TEST(ReplayRule4, ATransferCutsThroughAtTheLeastBandwidth) {
  const Topology topology = cut_through_star();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  expect_finish(topology, demand, {send(0, 0, 0, 10, 10.5), send(0, 1, 0.5, 10.5, 10.75)}, 10.75);
  // The faster link at its own bandwidth.
  expect_violation(topology, demand, {send(0, 0, 0, 5, 5.5), send(0, 1, 0.5, 10.5, 10.75)},
                   {"rule 1", "link 0", "10 us"});
  // Too early, too late, and after the whole chunk has arrived.
  for (const double start : {0.0, 0.4, 0.6, 10.5}) {
    expect_violation(topology, demand,
                     {send(0, 0, 0, 10, 10.5), send(0, 1, start, start + 10, start + 10.25)},
                     {"rule", "chunk 0"});
  }
  // Alone.
  expect_violation(topology, demand, {send(0, 1, 0.5, 10.5, 10.75)}, {"rule 4", "link 1", "0.5 us"});
}

TEST(ReplayRule4, AFastTransferKeepsItsRate) {
  const Topology topology = cut_through_star();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {2})});
  expect_finish(topology, demand, {send(0, 0, 0, 5, 5.5), send(0, 2, 0.5, 5.5, 5.75)}, 5.75);
  // Slower than its links is not one of the rules' rates.
  expect_violation(topology, demand, {send(0, 0, 0, 10, 10.5), send(0, 2, 0.5, 10.5, 10.75)}, {"rule 1"});
}

TEST(ReplayRule4, AMulticastTreeRunsAtOneRate) {
  const Topology topology = cut_through_star();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1, 2})});
  const std::vector<Send> sends = {send(0, 0, 0, 10, 10.5), send(0, 1, 0.5, 10.5, 10.75),
                                   send(0, 2, 0.5, 10.5, 10.75)};
  expect_finish(topology, demand, sends, 10.75);
  expect_violation(topology, demand, {sends[0], sends[1], send(0, 2, 0.5, 5.5, 5.75)}, {"rule 1", "link 2"});
}

TEST(ReplayRule4, SwitchesFollowEachOther) {
  // 0 -> s -> t -> {1, 2}: the slow link behind t slows all four.
  Fabric fabric(3);
  const int s = fabric.cut_through();
  const int t = fabric.cut_through();
  fabric.link(0, s, 4, 1);
  fabric.link(s, t, 3, 2);
  fabric.link(t, 1, 2, 3);
  fabric.link(t, 2, 1, 4);
  const Topology topology = fabric.build();
  const Demand one = custom(topology, {part(0, 12 * kUs, {1})});
  expect_finish(topology, one, {send(0, 0, 0, 6, 7), send(0, 1, 1, 7, 9), send(0, 2, 3, 9, 12)}, 12);
  const Demand both = custom(topology, {part(0, 12 * kUs, {1, 2})});
  expect_finish(topology, both,
                {send(0, 0, 0, 12, 13), send(0, 1, 1, 13, 15), send(0, 2, 3, 15, 18), send(0, 3, 3, 15, 19)},
                19);
  expect_violation(topology, both,
                   {send(0, 0, 0, 6, 7), send(0, 1, 1, 7, 9), send(0, 2, 3, 9, 12), send(0, 3, 3, 15, 19)},
                   {"rule 1", "link 0", "12 us"});
}

TEST(ReplayRule4, ACircleOfSwitchesSupportsNothing) {
  Fabric fabric(2);
  const int s = fabric.cut_through();
  const int t = fabric.cut_through();
  const int in = fabric.link(0, s);
  const int there = fabric.link(s, t);
  const int back = fabric.link(t, s);
  const int out = fabric.link(s, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  const std::vector<Send> circle = {send(0, there, 5, 15), send(0, back, 5, 15)};
  expect_violation(topology, demand, circle, {"rule 4", "no transfer from a GPU"});
  expect_violation(topology, demand, {circle[0], circle[1], send(0, out, 5, 15)}, {"rule 4"});
  // A transfer that goes round it is a detour.
  expect_finish(topology, demand, {circle[0], circle[1], send(0, in, 5, 15), send(0, out, 5, 15)}, 15);
}

TEST(ReplayRule4, ATransferComesToNoSwitchTwice) {
  Fabric fabric(2);
  const int near = fabric.cut_through();
  const int far = fabric.cut_through();
  fabric.link(0, near, 1, 1);
  fabric.link(near, far, 1, 1);
  fabric.link(far, near, 1, 1);
  fabric.link(near, 1, 1, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  const std::vector<Send> around{send(0, 0, 0, 10, 11), send(0, 1, 1, 11, 12), send(0, 2, 2, 12, 13),
                                 send(0, 3, 3, 13, 14)};
  expect_violation(topology, demand, around, {"rule 4", "link 2", "switch 2 once more"});
  std::vector<Send> with_number;
  for (const Send& each : around) with_number.push_back(numbered(0, each));
  expect_violation(topology, demand, with_number, {"rule 4", "link 2", "switch 2 once more"});
  // Two transfers of the chunk may.
  expect_finish(topology, demand,
                {around[0], send(0, 3, 1, 11, 12), send(0, 0, 20, 30, 31), send(0, 3, 21, 31, 32)}, 12);
}

// 0 and 1 -> leaf -> spine <- 2, and down again: what the spine has added up comes to the leaf once more.
TEST(ReplayRule4, ASumForSeveralComesDownWhereItWentUp) {
  Fabric fabric(3);
  const int leaf = fabric.cut_through(true, true);
  const int spine = fabric.cut_through(true, true);
  for (const auto& [src, dst] : std::vector<std::pair<int, int>>{
           {0, leaf}, {1, leaf}, {leaf, spine}, {2, spine}, {spine, leaf}, {spine, 2}, {leaf, 0}, {leaf, 1}})
    fabric.link(src, dst, 1, 1);
  const Topology topology = fabric.build();
  const auto sends_over = [&](const std::vector<int>& links) {
    std::vector<Send> sends;
    for (const int l : links) {
      const double start_us = l < 2 ? 0 : l < 4 ? 1 : l < 6 ? 2 : 3;
      const Send each = numbered(0, send(0, l, start_us, start_us + 10, start_us + 11));
      sends.push_back(l < 4 ? adding(each) : each);
    }
    return sends;
  };
  const auto sum_for = [&](const std::vector<int>& destinations) {
    return custom(topology, {sum_of({0, 1, 2}, 10 * kUs, destinations)});
  };
  expect_finish(topology, sum_for({0, 1, 2}), sends_over({0, 1, 2, 3, 4, 5, 6, 7}), 14);
  expect_finish(topology, sum_for({0, 1}), sends_over({0, 1, 2, 3, 4, 6, 7}), 14);
  expect_violation(topology, sum_for({0}), sends_over({0, 1, 2, 3, 4, 6}),
                   {"rule 4", "link 4", "switch 3 once more"});
  // Nothing is added up.
  Contribution whole = sum_of({0, 1, 2}, 10 * kUs, {0, 1});
  whole.held = {{GpuId{0}, gpus({0, 1, 2})}, {GpuId{2}, {}}};
  std::vector<Send> copies = sends_over({0, 2, 4, 7});
  for (Send& each : copies) each.op = SendOp::copy;
  expect_violation(topology, custom(topology, {whole}), copies, {"rule 4", "link 4", "switch 3 once more"});
}

TEST(ReplayRule4, ATransferNeedsASendThatItsGpuMayStart) {
  Fabric fabric(3);
  const int sw = fabric.cut_through();
  fabric.link(0, 1);
  fabric.link(1, sw);
  fabric.link(sw, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {2})});
  expect_finish(topology, demand, {send(0, 0, 0, 1), send(0, 1, 1, 2), send(0, 2, 1, 2)}, 2);
  expect_violation(topology, demand, {send(0, 0, 0, 1), send(0, 1, 0.5, 1.5), send(0, 2, 0.5, 1.5)},
                   {"rule 2", "GPU 1", "link 1"});
}

/// Two links from 0 into a switch and two out of it, to 1 and to 2.
Topology double_star(double in0, double in1, double out0, double out1, bool multicast = false) {
  Fabric fabric(3);
  const int sw = fabric.cut_through(multicast);
  fabric.link(0, sw, in0);
  fabric.link(0, sw, in1);
  fabric.link(sw, 1, out0);
  fabric.link(sw, 2, out1);
  return fabric.build();
}

TEST(ReplayRule4, TransfersThatMeetArePairedAsTheRatesSay) {
  const auto sends = [](double end0, double end1, double end2, double end3) {
    return std::vector<Send>{send(0, 0, 0, end0), send(0, 1, 0, end1), send(0, 2, 0, end2),
                             send(0, 3, 0, end3)};
  };
  for (const bool multicast : {false, true}) {
    const Topology split = double_star(2, 1, 2, 1, multicast);
    const Demand demand = custom(split, {part(0, 10 * kUs, {1, 2})});
    expect_finish(split, demand, sends(5, 10, 5, 10), 10);    // fast with fast
    expect_finish(split, demand, sends(10, 10, 10, 10), 10);  // fast with slow, twice
    expect_violation(split, demand, sends(5, 10, 10, 5), {"rule 1"});
    // All at 1 GB/s, but one of the two transfers has no link that slow.
    expect_violation(double_star(2, 2, 2, 1, multicast), demand, sends(10, 10, 10, 10), {"rule 4", "faster"});
    expect_finish(double_star(2, 2, 1, 1, multicast), demand, sends(10, 10, 10, 10), 10);
    expect_finish(double_star(1, 1, 2, 2, multicast), demand, sends(10, 10, 10, 10), 10);
  }
}

TEST(ReplayRule4, PairingLooksAcrossSwitches) {
  // a and b carry a transfer each, all at 1 GB/s. Both may end at u's slow link, a alone at v's: so a has to
  // take v's.
  const auto fabric_with = [](double slow_v) {
    Fabric fabric(4);
    const int a = fabric.cut_through();
    const int b = fabric.cut_through();
    const int u = fabric.cut_through();
    const int v = fabric.cut_through();
    fabric.link(0, a, 2);
    fabric.link(0, b, 2);
    fabric.link(a, u, 2);
    fabric.link(a, v, 2);
    fabric.link(b, u, 2);
    fabric.link(u, 1, 1);
    fabric.link(u, 2, 2);
    fabric.link(v, 3, slow_v);
    return fabric.build();
  };
  std::vector<Send> sends;
  for (int l = 0; l < 8; ++l) sends.push_back(send(0, l, 0, 10));
  const Demand demand = custom(fabric_with(1), {part(0, 10 * kUs, {1, 2, 3})});
  expect_finish(fabric_with(1), demand, sends, 10);
  expect_violation(fabric_with(2), demand, sends, {"rule 4", "faster"});
}

TEST(ReplayRule4, ManyTransfersOfOneChunkMeet) {
  const int n = 64;
  Fabric fabric(2 * n);
  const int sw = fabric.cut_through(false);
  for (int g = 0; g < 2 * n; ++g) fabric.link(g, sw);
  for (int g = 0; g < 2 * n; ++g) fabric.link(sw, g);
  const Topology topology = fabric.build();
  std::vector<int> others;
  for (int g = 1; g < 2 * n; ++g) others.push_back(g);
  const Demand demand = custom(topology, {part(0, kUs, others)});
  // Doubling: holders 0 .. 2^k - 1 send to the next 2^k.
  std::vector<Send> sends;
  double t = 0;
  for (int holders = 1; holders < 2 * n; holders *= 2, ++t) {
    for (int g = 0; g < holders; ++g) {
      sends.push_back(send(0, g, t, t + 1));
      sends.push_back(send(0, 2 * n + holders + g, t, t + 1));
    }
  }
  expect_finish(topology, demand, sends, 7);
  sends.pop_back();
  expect_violation(topology, demand, sends, {"rule 5", "switch 128", "6 us"});
}

TEST(ReplayRule5, WhatEntersACutThroughSwitchLeavesIt) {
  const Topology topology = cut_through_star();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {2})});
  const std::vector<Send> sends = {send(0, 0, 0, 5, 5.5), send(0, 2, 0.5, 5.5, 5.75)};
  expect_violation(topology, demand, {sends[0], sends[1], send(0, 0, 20, 25, 25.5)},
                   {"rule 5", "switch 3", "20.5 us", "link 0"});
}

TEST(ReplayRule5, ASwitchThatCannotMulticastSendsOn) {
  const Topology topology = cut_through_star(false);
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1, 2})});
  expect_violation(topology, demand,
                   {send(0, 0, 0, 10, 10.5), send(0, 1, 0.5, 10.5, 10.75), send(0, 2, 0.5, 10.5, 10.75)},
                   {"rule 5", "switch 3", "cannot multicast"});
  expect_finish(topology, demand,
                {send(0, 0, 0, 10, 10.5), send(0, 1, 0.5, 10.5, 10.75), send(0, 0, 10, 15, 15.5),
                 send(0, 2, 10.5, 15.5, 15.75)},
                15.75);
}

TEST(ReplayRule3, AStoringSwitchSendsOnAtTheArrival) {
  const Topology topology = storing_star(0);
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  // Each link at its own rate: in during [0, 5), there at 5.5.
  const Send in = send(0, 0, 0, 5, 5.5);
  expect_finish(topology, demand, {in, send(0, 1, 5.5, 15.5, 15.75)}, 15.75);
  expect_violation(topology, demand, {in, send(0, 1, 0.5, 10.5, 10.75)}, {"rule 3", "link 1", "0.5 us"});
  expect_violation(topology, demand, {in, send(0, 1, 5.4, 15.4, 15.65)}, {"rule 3", "link 1"});
  expect_violation(topology, demand, {in, send(0, 1, 6, 16, 16.25)},
                   {"rule 3", "switch 3", "5.5 us", "until 6 us", "buffer_bytes are 0"});
  expect_violation(topology, demand, {send(0, 1, 5.5, 15.5, 15.75)}, {"rule 3"});
}

TEST(ReplayRule3, ABufferLetsAChunkWait) {
  const Topology topology = storing_star(10 * kUs);
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  const Send in = send(0, 0, 0, 5, 5.5);
  expect_finish(topology, demand, {in, send(0, 1, 5.5, 15.5, 15.75)}, 15.75);
  expect_finish(topology, demand, {in, send(0, 1, 100, 110, 110.25)}, 110.25);
  expect_violation(storing_star(10 * kUs - 1), demand, {in, send(0, 1, 100, 110, 110.25)},
                   {"rule 3", "10000 bytes", "9999"});
}

TEST(ReplayRule3, WaitingChunksFillTheBufferTogether) {
  const std::vector<Contribution> parts = {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {1})};
  // Chunk 1 arrives at 10.5; until chunk 0 leaves both wait.
  const auto sends = [](double leaves0) {
    return std::vector<Send>{send(0, 0, 0, 5, 5.5), send(1, 0, 5, 10, 10.5),
                             send(0, 1, leaves0, leaves0 + 10, leaves0 + 10.25), send(1, 1, 30, 40, 40.25)};
  };
  const Demand demand = custom(storing_star(0), parts);
  expect_violation(storing_star(15 * kUs), demand, sends(11), {"rule 3", "chunk 1", "20000 bytes"});
  expect_finish(storing_star(20 * kUs), demand, sends(11), 40.25);
  expect_finish(storing_star(15 * kUs), demand, sends(10.5), 40.25);  // one leaves as the other comes
  expect_finish(storing_star(15 * kUs), demand, sends(10.5 + 5e-7), 40.25);
}

TEST(ReplayRule3, AChunkWaitsForItsLastOnwardSend) {
  const std::vector<Contribution> parts = {part(0, 10 * kUs, {1, 2}), part(0, 10 * kUs, {1})};
  const auto sends = [](double leaves0) {
    return std::vector<Send>{send(0, 0, 0, 5, 5.5), send(0, 1, 5.5, 15.5, 15.75),
                             send(0, 2, leaves0, leaves0 + 5, leaves0 + 5.25), send(1, 0, 5, 10, 10.5),
                             send(1, 1, 20, 30, 30.25)};
  };
  const Demand demand = custom(storing_star(0), parts);
  expect_finish(storing_star(10 * kUs), demand, sends(10.5), 30.25);
  expect_violation(storing_star(10 * kUs), demand, sends(12), {"rule 3", "20000 bytes"});
  expect_finish(storing_star(20 * kUs), demand, sends(12), 30.25);
}

TEST(ReplayRule3, EachArrivalIsSentOn) {
  const std::vector<Contribution> parts = {part(0, 10 * kUs, {1, 2})};
  const Demand demand = custom(storing_star(0), parts);
  const Send in = send(0, 0, 0, 5, 5.5);
  const Send again = send(0, 0, 5, 10, 10.5);
  const Send to1 = send(0, 1, 5.5, 15.5, 15.75);
  const Send to2 = send(0, 2, 5.5, 10.5, 10.75);
  const Send to2_later = send(0, 2, 10.5, 15.5, 15.75);
  expect_finish(storing_star(0), demand, {in, to1, to2}, 15.75);
  expect_violation(storing_star(0, false), demand, {in, to1, to2}, {"rule 3", "left to be sent on"});
  expect_violation(storing_star(0), demand, {in, again, to1, to2}, {"rule 5", "switch 3", "10.5 us"});
  for (const bool multicast : {false, true}) {
    expect_finish(storing_star(0, multicast), demand, {in, again, to1, to2_later}, 15.75);
  }
  // Copied at the first arrival, and sent on again at the second.
  const Send to1_again = send(0, 1, 15.5, 25.5, 25.75);
  expect_violation(storing_star(0), demand, {in, again, to1, to2, to1_again},
                   {"rule 3", "buffer_bytes are 0"});
  expect_finish(storing_star(10 * kUs), demand, {in, again, to1, to2, to1_again}, 15.75);
  expect_violation(storing_star(10 * kUs, false), demand, {in, again, to1, to2, to1_again}, {"rule 3"});
}

TEST(ReplayRule3, TheLatestArrivalServesTheLatestSend) {
  // Arrivals at 5.5 and 10.5; sent on at 5.5 and 30: only the second one waits.
  const Topology topology = storing_star(10 * kUs);
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1, 2}), part(0, 10 * kUs, {2})});
  expect_finish(topology, demand,
                {send(0, 0, 0, 5, 5.5), send(0, 0, 5, 10, 10.5), send(0, 1, 5.5, 15.5, 15.75),
                 send(0, 2, 30, 35, 35.25),
                 // Chunk 1 comes when chunk 0 has left for good.
                 send(1, 0, 24.5, 29.5, 30), send(1, 2, 40, 45, 45.25)},
                45.25);
}

TEST(ReplayRule3, ACircleOfStoringSwitchesSupportsNothing) {
  Fabric fabric(2);
  const int s = fabric.store_and_forward(1e9);
  const int t = fabric.store_and_forward(1e9);
  fabric.link(0, s);
  fabric.link(s, t);
  fabric.link(t, s);
  fabric.link(s, 1);
  const Topology topology = fabric.build();
  const double tiny = 1e-9;
  const Demand demand = custom(topology, {part(0, tiny * kUs, {1})});
  expect_violation(topology, demand, {send(0, 1, 5, 5), send(0, 2, 5, 5), send(0, 3, 5, 5)}, {"rule 3"});
  EXPECT_TRUE(replay(topology, demand,
                     std::vector{send(0, 1, 5, 5), send(0, 2, 5, 5), send(0, 3, 5, 5), send(0, 0, 5, 5)})
                  .valid());
}

TEST(ReplaySwitches, AStoringSwitchEndsACutThroughSection) {
  // 0 -> cut-through -> storing -> cut-through -> 1; 1 GB/s before the storing switch, 2 GB/s behind it.
  Fabric fabric(2);
  const int a = fabric.cut_through();
  const int b = fabric.store_and_forward(0);
  const int c = fabric.cut_through();
  fabric.link(0, a, 4, 1);
  fabric.link(a, b, 1, 1);
  fabric.link(b, c, 2, 1);
  fabric.link(c, 1, 4, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  const Send in = send(0, 0, 0, 10, 11);
  const Send middle = send(0, 1, 1, 11, 12);
  expect_finish(topology, demand, {in, middle, send(0, 2, 12, 17, 18), send(0, 3, 13, 18, 19)}, 19);
  expect_violation(topology, demand, {in, middle, send(0, 2, 12, 22, 23), send(0, 3, 13, 23, 24)},
                   {"rule 1", "link 2", "17 us"});
  expect_violation(topology, demand, {in, middle, send(0, 2, 2, 7, 8), send(0, 3, 3, 8, 9)},
                   {"rule 3", "link 2"});
}

TEST(ReplaySwitches, ATransferMayReturnToItsSender) {
  Fabric fabric(2);
  const int sw = fabric.cut_through();
  fabric.link(0, sw);
  fabric.link(sw, 0);
  fabric.link(sw, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {1})});
  expect_finish(topology, demand, {send(0, 0, 0, 1), send(0, 1, 0, 1), send(0, 2, 0, 1)}, 1);
}

}  // namespace
}  // namespace rondo::test_replay_switches
