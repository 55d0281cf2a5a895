#include <limits>

#include "by_hand.hpp"

/// Transfers with numbers, their rates and message costs.
namespace rondo::test_replay_numbers {
namespace {

/// 0 -> 1 and 0 -> 2, 1 GB/s; two chunks of 10 and 5 us.
struct Pair {
  Topology topology = [] {
    Fabric fabric(3);
    fabric.link(0, 1, 1, 0.5);
    fabric.link(0, 2, 1, 0.5);
    return fabric.build();
  }();
  Demand demand = custom(topology, {part(0, 10 * kUs, {1}), part(0, 5 * kUs, {1})});
};

TEST(ReplayNumbers, ChunksTravelTogether) {
  Pair pair;
  const auto together = [](int number0, int number1, double end) {
    return std::vector<Send>{numbered(number0, send(0, 0, 0, end, end + 0.5)),
                             numbered(number1, send(1, 0, 0, end, end + 0.5))};
  };
  expect_finish(pair.topology, pair.demand, together(7, 7, 15), 15.5);
  expect_violation(pair.topology, pair.demand, together(7, 8, 15), {"rule 1", "link 0", "transfer"});
  expect_violation(pair.topology, pair.demand, together(kNoTransfer, kNoTransfer, 15), {"rule 1", "link 0"});
  expect_violation(pair.topology, pair.demand, together(7, 7, 10), {"rule 1", "transfer 7", "15 us"});
  std::vector<Send> apart = together(7, 7, 15);
  apart[1].start_us = 1;
  expect_violation(pair.topology, pair.demand, apart,
                   {"rule 4", "chunk 1 over link 0", "does not go together with chunk 0", "from 0 to 15 us"});
  expect_violation(pair.topology, pair.demand, together(-2, -2, 15), {"transfer -2", "0 or more"});
}

TEST(ReplayNumbers, AllLinksCarryTheSameChunks) {
  Fabric fabric(2);
  const int sw = fabric.cut_through();
  fabric.link(0, sw, 2, 1);
  fabric.link(sw, 1, 1, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1}), part(0, 5 * kUs, {1})});
  std::vector<Send> sends = {send(0, 0, 0, 15, 16), send(1, 0, 0, 15, 16), send(0, 1, 1, 16, 17),
                             send(1, 1, 1, 16, 17)};
  for (Send& s : sends) s.transfer = 0;
  expect_finish(topology, demand, sends, 17);
  for (std::size_t left_out = 0; left_out < sends.size(); ++left_out) {
    std::vector<Send> rest = sends;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
    expect_violation(topology, demand, rest,
                     {"rule 4", "same chunks", left_out % 2 == 0 ? "chunk 0" : "chunk 1"});
  }
  sends.push_back(sends[3]);
  expect_violation(topology, demand, sends, {"rule 4", "chunk 1 over link 1", "goes over its link twice"});
}

TEST(ReplayNumbers, SendsOfOneNumberJoin) {
  Pair pair;
  const Demand both = custom(pair.topology, {part(0, 10 * kUs, {1, 2})});
  const Send to1 = send(0, 0, 0, 10, 10.5);
  const Send to2 = send(0, 1, 0, 10, 10.5);
  expect_finish(pair.topology, both, {numbered(0, to1), numbered(1, to2)}, 10.5);
  expect_violation(pair.topology, both, {numbered(3, to1), numbered(3, to2)},
                   {"rule 4", "link 1", "from 0 us", "transfer 3", "no cut-through switch joins"});
  // A store-and-forward switch ends a transfer.
  Fabric fabric(2);
  const int sw = fabric.store_and_forward(0);
  fabric.link(0, sw);
  fabric.link(sw, 1);
  const Topology storing = fabric.build();
  const Demand demand = custom(storing, {part(0, 10 * kUs, {1})});
  expect_finish(storing, demand, {numbered(0, send(0, 0, 0, 10)), numbered(1, send(0, 1, 10, 20))}, 20);
  expect_violation(storing, demand, {numbered(0, send(0, 0, 0, 10)), numbered(0, send(0, 1, 10, 20))},
                   {"rule 4", "link 1", "no cut-through switch joins"});
}

TEST(ReplayNumbers, ANumberPassesASwitchAlone) {
  // Two transfers of one chunk enter at one instant; without numbers any pairing would do.
  Fabric fabric(3);
  const int sw = fabric.cut_through(false);
  fabric.link(0, sw);
  fabric.link(0, sw);
  fabric.link(sw, 1);
  fabric.link(sw, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1, 2})});
  const auto sends = [](int a, int b, int c, int d) {
    return std::vector<Send>{numbered(a, send(0, 0, 0, 10)), numbered(b, send(0, 1, 0, 10)),
                             numbered(c, send(0, 2, 0, 10)), numbered(d, send(0, 3, 0, 10))};
  };
  expect_finish(topology, demand, sends(0, 1, 0, 1), 10);
  expect_finish(topology, demand, sends(0, 1, 1, 0), 10);
  expect_finish(topology, demand, sends(0, -1, 0, -1), 10);
  expect_finish(topology, demand, sends(-1, -1, -1, -1), 10);
  expect_violation(topology, demand, sends(0, 0, 0, 0), {"rule 10", "chunk 0", "no sum"});
  expect_violation(topology, demand, sends(0, 1, 0, 0), {"rule 5", "switch 3"});
  expect_violation(topology, demand, sends(0, -1, -1, -1), {"rule 5", "switch 3"});
  expect_violation(topology, demand, sends(0, 1, 0, 2), {"rule 4", "no send of the transfer enters"});
}

TEST(ReplayRates, SlowTransfersShareALink) {
  Fabric fabric(2);
  fabric.link(0, 1, 2, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, std::vector<Contribution>(3, part(0, 10 * kUs, {1})));
  const auto sends = [](double rate, std::vector<double> starts) {
    std::vector<Send> result;
    for (int c = 0; c < 3; ++c) {
      const double t = starts[static_cast<std::size_t>(c)];
      result.push_back(numbered(c, at_rate(rate, send(c, 0, t, t + 10 / rate, t + 10 / rate + 1))));
    }
    return result;
  };
  expect_finish(topology, demand, sends(1, {0, 0, 10}), 21);
  expect_finish(topology, demand, sends(1, {0, 3, 10}), 21);
  expect_finish(topology, demand, sends(0.625, {0, 0, 0}), 17);
  expect_finish(topology, demand, sends(2, {0, 5, 10}), 16);
  EXPECT_TRUE(replay(topology, demand, sends(1, {0, 0, 10 - 9e-7})).valid());
  expect_violation(topology, demand, sends(1, {0, 0, 10 - 1e-5}), {"rule 1", "chunk 2", "3 GB/s", "2 GB/s"});
  expect_violation(topology, demand, sends(1, {0, 0, 5}), {"rule 1", "chunk 2", "from 5 us", "until 10 us"});
  expect_violation(topology, demand, sends(2, {0, 4, 10}), {"rule 1", "chunk 1", "4 GB/s"});
  expect_violation(topology, demand, sends(2.5, {0, 4, 8}),
                   {"rule 1", "link 0", "2.5 GB/s", "0 us", "2 GB/s"});
}

TEST(ReplayRates, ExcessAddsUp) {
  // Twenty transfers at a twentieth of the bandwidth, and one that is too much from 0 on: no two of them
  // overlap unduly.
  Fabric fabric(2);
  fabric.link(0, 1);
  const Topology topology = fabric.build();
  for (const double extra : {1e-12, 1e-3}) {
    std::vector<Contribution> parts(20, part(0, kUs, {1}));
    parts.push_back(part(0, extra * kUs, {1}));
    const Demand demand = custom(topology, parts);
    std::vector<Send> sends;
    for (int c = 0; c < 20; ++c) sends.push_back(numbered(c, at_rate(0.05, send(c, 0, 0, 20))));
    sends.push_back(numbered(20, at_rate(0.05 * extra, send(20, 0, 0, 20))));
    EXPECT_EQ(replay(topology, demand, sends).valid(), extra < 1e-6);
  }
}

TEST(ReplayRates, WhatASwitchSlowsLeavesTheRestOfALinkToOthers) {
  // 0 and 1 -> s -> t -> 2 and 3; between the switches there is room for both.
  for (const double uplink : {2.0, 1.9}) {
    Fabric fabric(4);
    const int s = fabric.cut_through();
    const int t = fabric.cut_through();
    fabric.link(0, s);
    fabric.link(1, s);
    fabric.link(s, t, uplink);
    fabric.link(t, 2);
    fabric.link(t, 3);
    const Topology topology = fabric.build();
    const Demand demand = custom(topology, {part(0, 10 * kUs, {2}), part(1, 10 * kUs, {3})});
    const std::vector<Send> sends = {send(0, 0, 0, 10), send(0, 2, 0, 10), send(0, 3, 0, 10),
                                     send(1, 1, 0, 10), send(1, 2, 0, 10), send(1, 4, 0, 10)};
    if (uplink == 2.0) {
      expect_finish(topology, demand, sends, 10);
    } else {
      expect_violation(topology, demand, sends, {"rule 1", "link 2", "2 GB/s", "1.9 GB/s"});
    }
  }
}

TEST(ReplayRates, ATransferHasOneRate) {
  Fabric fabric(2);
  const int sw = fabric.cut_through();
  fabric.link(0, sw, 2, 1);
  fabric.link(sw, 1, 1, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  const Send in = numbered(0, send(0, 0, 0, 20, 21));
  const Send out = numbered(0, send(0, 1, 1, 21, 22));
  expect_finish(topology, demand, {at_rate(0.5, in), at_rate(0.5, out)}, 22);
  expect_violation(topology, demand, {at_rate(0.5, in), at_rate(0.6, out)},
                   {"rule 4", "link 1", "0.6", "0.5", "one rate"});
  expect_violation(topology, demand, {at_rate(0.5, in), out}, {"rule 4", "link 1", "no rate_GBps"});
  expect_violation(topology, demand, {in, out}, {"rule 1", "10 us"});
  expect_violation(
      topology, demand,
      {at_rate(1.25, numbered(0, send(0, 0, 0, 8, 9))), at_rate(1.25, numbered(0, send(0, 1, 1, 9, 10)))},
      {"rule 1", "link 1", "1.25 GB/s", "1 GB/s"});
  expect_violation(topology, demand, {at_rate(0.5, send(0, 0, 0, 20, 21)), out}, {"no transfer number"});
  for (const double rate : {0.0, -1.0, std::numeric_limits<double>::infinity()})
    expect_violation(topology, demand, {at_rate(rate, in), out}, {"rate_GBps", "positive and finite"});
}

TEST(ReplayRates, RatesCountInAGroup) {
  Fabric fabric(3);
  fabric.link(0, 1, 2);
  fabric.link(0, 2, 2);
  fabric.share({0, 1}, 2.5);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {2})});
  const auto sends = [](double rate) {
    return std::vector<Send>{numbered(0, at_rate(rate, send(0, 0, 0, 10 / rate))),
                             numbered(1, at_rate(rate, send(1, 1, 0, 10 / rate)))};
  };
  expect_finish(topology, demand, sends(1.25), 8);
  expect_violation(topology, demand, sends(1.6), {"rule 6", "3.2 GB/s", "2.5 GB/s"});
  // Chunks that go together are one transfer.
  const Demand two = custom(topology, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {1}), part(0, kUs, {2})});
  expect_finish(topology, two,
                {numbered(0, send(0, 0, 0, 10)), numbered(0, send(1, 0, 0, 10)),
                 numbered(1, at_rate(0.5, send(2, 1, 0, 2)))},
                10);
}

TEST(ReplayMessages, ATransferPaysOnce) {
  Fabric fabric(2);
  fabric.link(0, 1, 1, 0.5, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {1})});
  expect_finish(topology, demand, {send(0, 0, 0, 12, 12.5), send(1, 0, 12, 24, 24.5)}, 24.5);
  expect_finish(topology, demand,
                {numbered(0, send(0, 0, 0, 22, 22.5)), numbered(0, send(1, 0, 0, 22, 22.5))}, 22.5);
  expect_violation(topology, demand, {send(0, 0, 0, 10, 10.5), send(1, 0, 12, 24, 24.5)},
                   {"rule 1", "chunk 0", "12 us, not at 10 us"});
  expect_violation(topology, demand,
                   {numbered(0, send(0, 0, 0, 24, 24.5)), numbered(0, send(1, 0, 0, 24, 24.5))},
                   {"rule 1", "22 us"});
}

TEST(ReplayMessages, TheGreatestCostOfJoinedLinksCounts) {
  Fabric fabric(3);
  const int sw = fabric.cut_through();
  fabric.link(0, sw, 2, 1, 1);
  fabric.link(sw, 1, 1, 1, 3);
  fabric.link(sw, 2, 2, 1, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1, 2})});
  expect_finish(topology, demand, {send(0, 0, 0, 13, 14), send(0, 1, 1, 14, 15), send(0, 2, 1, 14, 15)}, 15);
  const Demand one = custom(topology, {part(0, 10 * kUs, {2})});
  expect_finish(topology, one, {send(0, 0, 0, 7, 8), send(0, 2, 1, 8, 9)}, 9);
  expect_violation(topology, one, {send(0, 0, 0, 6, 7), send(0, 2, 1, 8, 9)}, {"rule 1", "link 0", "7 us"});
}

TEST(ReplayMessages, CostsSideBySideAreRefused) {
  Fabric fabric(2);
  fabric.link(0, 1, 2, 0, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1}), part(0, 10 * kUs, {1})});
  const auto sends = [](double second) {
    return std::vector<Send>{numbered(0, at_rate(1, send(0, 0, 0, 12))),
                             numbered(1, at_rate(1, send(1, 0, second, second + 12)))};
  };
  expect_finish(topology, demand, sends(2), 14);
  expect_violation(topology, demand, sends(1.9),
                   {"rule 8", "chunk 1", "link 0", "from 1.9 us", "until 2 us"});
  expect_violation(topology, demand, sends(0), {"rule 8", "message cost"});
}

TEST(ReplayMessages, SendsThatMeetNeedNumbers) {
  // Two sends of a chunk enter at one instant: which one runs into the costly link is open.
  const auto fabric_with = [](double message_us) {
    Fabric fabric(3);
    const int sw = fabric.cut_through(false);
    fabric.link(0, sw);
    fabric.link(0, sw);
    fabric.link(sw, 1, 1, 0, message_us);
    fabric.link(sw, 2, 1, 0, message_us);
    return fabric.build();
  };
  const auto sends = [](int second, double end) {
    return std::vector<Send>{send(0, 0, 0, end), numbered(second, send(0, 1, 0, end)), send(0, 2, 0, end),
                             numbered(second, send(0, 3, 0, end))};
  };
  const Demand demand = custom(fabric_with(0), {part(0, 10 * kUs, {1, 2})});
  expect_finish(fabric_with(0), demand, sends(kNoTransfer, 10), 10);
  expect_violation(fabric_with(2), demand, sends(kNoTransfer, 12),
                   {"rule 4", "link 0", "from 0 us", "message cost", "need transfer numbers"});
  expect_finish(fabric_with(2), demand, sends(0, 12), 12);
}

}  // namespace
}  // namespace rondo::test_replay_numbers
