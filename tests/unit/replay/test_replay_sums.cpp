#include "by_hand.hpp"

/// Rules 9 and 10: what is added up where.
namespace rondo {
namespace {

/// 0 -> 1 -> 2 and back, 1 GB/s; chunks of 1 us.
Topology line() {
  Fabric fabric(3);
  fabric.link(0, 1);
  fabric.link(1, 2);
  fabric.link(2, 1);
  fabric.link(1, 0);
  return fabric.build();
}

Demand all_reduce(const Topology& topology) {
  return custom(topology, {sum_of({0, 1, 2}, kUs, {0, 1, 2})});
}

std::vector<Send> there_and_back() {
  return {adding(send(0, 0, 0, 1)), adding(send(0, 1, 1, 2)), send(0, 2, 2, 3), send(0, 3, 3, 4)};
}

TEST(ReplaySums, AddUpAlongALine) {
  const Topology topology = line();
  const Demand to_last = custom(topology, {sum_of({0, 1, 2}, kUs, {2})});
  std::vector<Send> sends = {adding(send(0, 0, 0, 1)), adding(send(0, 1, 1, 2))};
  expect_finish(topology, to_last, sends, 2);
  expect_finish(topology, all_reduce(topology), there_and_back(), 4);
  // What comes after the start is not in it.
  sends[1] = adding(send(0, 1, 0.5, 1.5));
  expect_violation(topology, to_last, sends, {"rule 7", "chunk 0", "GPU 2", "never includes GPU 0"});
  sends.pop_back();
  expect_violation(topology, to_last, sends, {"rule 7", "GPU 2", "never includes GPU 0"});
}

TEST(ReplaySums, ACopyContainsWhatWasThere) {
  const Topology topology = line();
  std::vector<Send> sends = there_and_back();
  sends[0].op = SendOp::copy;
  expect_violation(topology, all_reduce(topology), sends,
                   {"rule 9", "chunk 0 over link 0", "overwrites the partial sum that GPU 1 holds",
                    "loses the data of GPU 1"});
  sends = there_and_back();
  sends[1].op = SendOp::copy;
  expect_violation(topology, all_reduce(topology), sends, {"rule 9", "link 1", "loses the data of GPU 2"});
}

TEST(ReplaySums, NothingIsAddedTwice) {
  const Topology topology = line();
  for (const std::size_t back : {2, 3}) {
    std::vector<Send> sends = there_and_back();
    sends[back].op = SendOp::reduce;
    expect_violation(topology, all_reduce(topology), sends,
                     {"rule 9", back == 2 ? "link 2" : "link 3", "adds the data of GPU 0",
                      "contains it already", back == 2 ? "GPU 1" : "GPU 0"});
  }
  std::vector<Send> sends = there_and_back();
  sends.push_back(adding(send(0, 0, 1, 2)));
  expect_violation(topology, all_reduce(topology), sends, {"rule 9", "adds the data of GPU 0", "GPU 1"});
}

TEST(ReplaySums, WhatArrivesAtTheStartIsInIt) {
  const Topology topology = line();
  const Demand to_last = custom(topology, {sum_of({0, 1, 2}, kUs, {2})});
  const Send first = adding(send(0, 0, 0, 1));
  EXPECT_TRUE(replay(topology, to_last, std::vector{first, adding(send(0, 1, 1 - 9e-7, 2 - 9e-7))}).valid());
  EXPECT_FALSE(replay(topology, to_last, std::vector{first, adding(send(0, 1, 1 - 2e-6, 2 - 2e-6))}).valid());
}

TEST(ReplaySums, AtOneTimeCopiesComeBeforeAdditions) {
  // 0 and 1 -> 2 -> 3, where 2 has nothing of its own.
  Fabric fabric(4);
  fabric.link(0, 2);
  fabric.link(1, 2);
  fabric.link(2, 3);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {sum_of({0, 1}, kUs, {3})});
  const Send a = send(0, 0, 0, 1);
  const Send b = send(0, 1, 0, 1);
  const Send onward = send(0, 2, 1, 2);
  expect_finish(topology, demand, {a, adding(b), onward}, 2);
  expect_finish(topology, demand, {adding(a), b, onward}, 2);
  expect_finish(topology, demand, {adding(a), adding(b), onward}, 2);
  expect_violation(topology, demand, {a, b, onward}, {"rule 9", "overwrites", "GPU 2"});
  // A little later it is still the same time, later than that it is not.
  expect_finish(topology, demand, {adding(a), send(0, 1, 5e-7, 1 + 5e-7), onward}, 2);
  expect_violation(topology, demand, {adding(a), send(0, 1, 1e-5, 1 + 1e-5), send(0, 2, 2, 3)},
                   {"rule 9", "link 1", "overwrites"});
  expect_finish(topology, demand, {a, adding(send(0, 1, 1e-5, 1 + 1e-5)), send(0, 2, 2, 3)}, 3);
}

TEST(ReplaySums, CopiesAtOneTimeMayContainOneAnother) {
  // 0 -> 1 -> 3 and 0 -> 3 arrive at one time.
  Fabric fabric(4);
  fabric.link(0, 1);
  fabric.link(1, 3);
  fabric.link(0, 3, 1, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {sum_of({0, 1}, kUs, {3})});
  expect_finish(topology, demand, {adding(send(0, 0, 0, 1)), send(0, 1, 1, 2), send(0, 2, 0, 1, 2)}, 2);
  expect_violation(topology, demand, {adding(send(0, 0, 0, 1)), send(0, 1, 1, 2), send(0, 2, 0.1, 1.1, 2.1)},
                   {"rule 9", "link 2", "loses the data of GPU 1"});
}

TEST(ReplaySums, SendsThatRestOnEachOtherAreRefused) {
  const Topology topology = line();
  const double tiny = 1e-9;
  const Demand demand = custom(topology, {sum_of({0, 1}, tiny * kUs, {0, 1})});
  // Each would carry the other's data, and its own twice.
  expect_violation(topology, demand, {adding(send(0, 0, 5, 5 + tiny)), adding(send(0, 3, 5, 5 + tiny))},
                   {"rule 9", "rest on each other"});
  // One after the other.
  EXPECT_TRUE(replay(topology, demand, std::vector{adding(send(0, 0, 5, 5 + tiny)), send(0, 3, 6, 6 + tiny)})
                  .valid());
}

TEST(ReplaySums, ASendOfNothingIsRefused) {
  const Topology topology = line();
  const Demand demand = custom(topology, {sum_of({0, 2}, kUs, {2})});
  expect_violation(topology, demand, {adding(send(0, 1, 0, 1)), adding(send(0, 0, 1, 2))},
                   {"rule 2", "link 1", "GPU 1 holds nothing"});
  expect_finish(topology, demand, {adding(send(0, 0, 0, 1)), adding(send(0, 1, 1, 2))}, 2);
}

TEST(ReplaySums, EachSourceIsReadyInItsTime) {
  const Topology topology = line();
  Contribution sum = sum_of({0, 1, 2}, kUs, {2});
  sum.source_ready_us = {3, 1, 0};
  const Demand demand = custom(topology, {sum});
  expect_finish(topology, demand, {adding(send(0, 0, 3, 4)), adding(send(0, 1, 4, 5))}, 5);
  expect_violation(topology, demand, {adding(send(0, 0, 2, 3)), adding(send(0, 1, 4, 5))},
                   {"rule 2", "GPU 0 holds nothing"});
  // 1 may pass on what came before its own data are ready, which go in a second send.
  sum.source_ready_us = {0, 10, 0};
  const Demand late = custom(topology, {sum});
  expect_violation(topology, late, {adding(send(0, 0, 0, 1)), adding(send(0, 1, 1, 2))},
                   {"rule 7", "never includes GPU 1"});
  expect_finish(topology, late, {adding(send(0, 0, 0, 1)), adding(send(0, 1, 10, 11))}, 11);
  // The destination's own part may be the last.
  sum.source_ready_us = {0, 0, 7};
  expect_finish(topology, custom(topology, {sum}), {adding(send(0, 0, 0, 1)), adding(send(0, 1, 1, 2))}, 7);
}

TEST(ReplaySums, AStateMayHoldPartialSums) {
  const Topology topology = line();
  Contribution sum = sum_of({0, 1, 2}, kUs, {0, 1, 2});
  sum.held = {{GpuId{1}, gpus({0, 1})}};
  const Demand demand = custom(topology, {sum});
  expect_finish(topology, demand, {adding(send(0, 1, 0, 1)), send(0, 2, 1, 2), send(0, 3, 2, 3)}, 3);
  expect_violation(topology, demand, {adding(send(0, 0, 0, 1))},
                   {"rule 9", "adds the data of GPU 0", "GPU 1"});
}

TEST(ReplaySums, TheFinishIsWhenTheSumIsWhole) {
  const Topology topology = line();
  std::vector<Send> sends = there_and_back();
  sends.push_back(send(0, 0, 5, 6));  // the whole sum once more
  expect_finish(topology, all_reduce(topology), sends, 4);
}

TEST(ReplaySums, AMemberPassesOnItsPartialSumOnly) {
  // A ring of 5: after one hop each way a GPU holds three contributions, and no two such sums are disjoint.
  Fabric fabric(5);
  for (int g = 0; g < 5; ++g) fabric.link(g, (g + 1) % 5);
  for (int g = 0; g < 5; ++g) fabric.link(g, (g + 4) % 5);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {sum_of({0, 1, 2, 3, 4}, kUs, {0, 1, 2, 3, 4})});
  std::vector<Send> sends;
  for (int l = 0; l < 10; ++l) sends.push_back(adding(send(0, l, 0, 1)));
  for (int l = 0; l < 10; ++l) sends.push_back(adding(send(0, l, 1, 2)));
  expect_violation(topology, demand, sends, {"rule 9", "contains it already"});
}

TEST(ReplaySums, SeveralSourcesOfDataAreHolders) {
  const Topology topology = line();
  Contribution data{.origin = GpuId{0}, .bytes = kUs, .destinations = gpus({1}), .sources = gpus({0, 2})};
  data.source_ready_us = {4, 1};
  const Demand demand = custom(topology, {data});
  expect_finish(topology, demand, {send(0, 2, 1, 2)}, 2);
  expect_finish(topology, demand, {send(0, 0, 4, 5)}, 5);
  expect_violation(topology, demand, {send(0, 0, 2, 3)}, {"rule 2", "GPU 0", "from 4 us"});
  expect_violation(topology, demand, {adding(send(0, 2, 1, 2))}, {"op 1", "not copy (0)", "no sum"});
  // A holder that is not ready yet may get the data from another.
  expect_finish(topology, demand, {send(0, 2, 1, 2), send(0, 3, 2, 3), send(0, 0, 3, 4)}, 2);
}

/// 0 and 1 -> switch -> 2 and 3.
std::vector<Send> through_switch() {
  std::vector<Send> sends = {adding(send(0, 0, 0, 1)), adding(send(0, 1, 0, 1)), adding(send(0, 2, 0, 1)),
                             adding(send(0, 3, 0, 1))};
  for (Send& s : sends) s.transfer = 0;
  return sends;
}
Topology adding_star(bool reduce, bool multicast = true) {
  Fabric fabric(4);
  const int sw = fabric.cut_through(multicast, reduce);
  fabric.link(0, sw);
  fabric.link(1, sw);
  fabric.link(sw, 2);
  fabric.link(sw, 3);
  return fabric.build();
}

TEST(ReplaySums, ACutThroughSwitchAddsInOneTransfer) {
  const Topology topology = adding_star(true);
  const Demand demand = custom(topology, {sum_of({0, 1, 2, 3}, kUs, {2, 3})});
  const Demand without = custom(topology, {sum_of({0, 1}, kUs, {2, 3})});
  expect_finish(topology, without, through_switch(), 1);
  expect_violation(topology, demand, through_switch(), {"rule 7", "never includes GPU 3"});
  expect_violation(adding_star(false), without, through_switch(),
                   {"rule 10", "link 0", "switch 4", "may not add"});
  expect_violation(adding_star(true, false), without, through_switch(), {"rule 5", "cannot multicast"});
  std::vector<Send> sends = through_switch();
  sends[1].op = SendOp::copy;
  expect_violation(topology, without, sends, {"rule 10", "link 1", "copy (0)"});
  sends = through_switch();
  for (Send& s : sends) s.transfer = kNoTransfer;
  expect_violation(topology, without, sends, {"rule 4", "need transfer numbers"});
  sends = through_switch();
  sends[1] = numbered(0, adding(send(0, 1, 0.5, 1.5)));
  expect_violation(topology, without, sends, {"rule 4", "chunk 0"});
}

TEST(ReplaySums, AddedSendsEnterAtOneInstant) {
  // 0 is 0.5 us further away.
  Fabric fabric(3);
  const int sw = fabric.cut_through(false, true);
  fabric.link(0, sw, 2, 1);
  fabric.link(1, sw, 4, 0.5);
  fabric.link(sw, 2, 3, 0.25);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {sum_of({0, 1}, 10 * kUs, {2})});
  const auto sends = [](double second) {
    std::vector<Send> result = {adding(send(0, 0, 0, 5, 6)),
                                adding(send(0, 1, second, second + 5, second + 5.5)), send(0, 2, 1, 6, 6.25)};
    for (Send& s : result) s.transfer = 3;
    return result;
  };
  expect_finish(topology, demand, sends(0.5), 6.25);
  expect_violation(topology, demand, sends(0.5 - 1e-5), {"rule", "transfer 3"});
  expect_violation(topology, demand, sends(0), {"rule", "transfer 3"});
}

TEST(ReplaySums, ASwitchAddsNothingTwice) {
  Fabric fabric(3);
  const int sw = fabric.cut_through(true, true);
  fabric.link(0, sw);
  fabric.link(0, sw);
  fabric.link(sw, 2);
  fabric.link(1, 2);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {sum_of({0, 1}, kUs, {2})});
  std::vector<Send> sends = {adding(send(0, 0, 0, 1)), adding(send(0, 1, 0, 1)), adding(send(0, 2, 0, 1))};
  for (Send& s : sends) s.transfer = 1;
  sends.push_back(adding(send(0, 3, 0, 1)));
  expect_violation(topology, demand, sends, {"rule 10", "adds the data of GPU 0", "switch 3"});
}

TEST(ReplaySums, SeveralSumsGoTogether) {
  const Topology topology = adding_star(true);
  const Demand demand = custom(topology, {sum_of({0, 1}, kUs, {2, 3}), sum_of({0, 1}, 2 * kUs, {3})});
  std::vector<Send> sends;
  for (int l = 0; l < 4; ++l) {
    for (int c = 0; c < 2; ++c) sends.push_back(numbered(5, adding(send(c, l, 0, 3))));
  }
  expect_finish(topology, demand, sends, 3);
  sends.pop_back();
  expect_violation(topology, demand, sends, {"rule 4", "chunk 1", "same chunks"});
}

TEST(ReplaySums, ASumPassesAPlainSwitch) {
  // 0 -> switch -> 1: the op of what enters a switch alone says nothing.
  Fabric fabric(2);
  const int sw = fabric.cut_through(false);
  fabric.link(0, sw);
  fabric.link(sw, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {sum_of({0, 1}, kUs, {1})});
  expect_finish(topology, demand, {send(0, 0, 0, 1), adding(send(0, 1, 0, 1))}, 1);
  expect_finish(topology, demand, {adding(send(0, 0, 0, 1)), adding(send(0, 1, 0, 1))}, 1);
  expect_violation(topology, demand, {adding(send(0, 0, 0, 1)), send(0, 1, 0, 1)}, {"rule 9", "GPU 1"});
  expect_violation(topology, demand, {adding(send(0, 1, 0, 1))}, {"rule 4", "link 1"});
}

/// 0 and 1 -> storing switch -> 2 and 3.
Topology adding_storage(double buffer_bytes, bool reduce, bool multicast = true) {
  Fabric fabric(4);
  const int sw = fabric.store_and_forward(buffer_bytes, multicast, reduce);
  fabric.link(0, sw);
  fabric.link(1, sw);
  fabric.link(sw, 2);
  fabric.link(sw, 3);
  return fabric.build();
}

TEST(ReplaySums, AStoringSwitchAddsWhatHasArrived) {
  const Topology topology = adding_storage(kUs, true, false);
  const Demand demand = custom(topology, {sum_of({0, 1}, kUs, {2})});
  const Send a = adding(send(0, 0, 0, 1));
  const Send b = adding(send(0, 1, 2, 3));
  const Send onward = adding(send(0, 2, 3, 4));
  expect_finish(topology, demand, {a, b, onward}, 4);
  // The sum waits from its first arrival on.
  expect_violation(adding_storage(kUs - 1, true), demand, {a, b, onward},
                   {"rule 3", "switch 4", "1 us", "until 3 us", "1000 bytes"});
  // Without waiting no buffer is needed.
  expect_finish(adding_storage(0, true), demand, {adding(send(0, 0, 2, 3)), b, onward}, 4);
  // What does not add sends each on alone.
  expect_violation(adding_storage(2 * kUs, false), demand, {a, b, onward}, {"rule 5", "link 1", "switch 4"});
  expect_finish(adding_storage(2 * kUs, false), demand, {a, b, onward, adding(send(0, 2, 4, 5))}, 5);
  // So does copy (0).
  expect_violation(topology, demand, {a, send(0, 1, 2, 3), onward}, {"rule"});
  expect_finish(adding_storage(2 * kUs, true), demand,
                {a, send(0, 1, 2, 3), onward, adding(send(0, 2, 4, 5))}, 5);
}

TEST(ReplaySums, ASumThatHasBegunToLeaveIsClosed) {
  const Demand demand = custom(adding_storage(0, true), {sum_of({0, 1}, kUs, {2})});
  const std::vector<Send> sends = {adding(send(0, 0, 0, 1)), adding(send(0, 1, 2, 3)),
                                   adding(send(0, 2, 1, 2)), adding(send(0, 2, 3, 4))};
  expect_finish(adding_storage(0, true), demand, sends, 4);
  expect_finish(adding_storage(0, true, false), demand, sends, 4);
}

TEST(ReplaySums, AStoringSwitchCopiesASum) {
  const Demand demand = custom(adding_storage(0, true), {sum_of({0, 1}, kUs, {2, 3})});
  const std::vector<Send> sends = {adding(send(0, 0, 0, 1)), adding(send(0, 1, 0, 1)),
                                   adding(send(0, 2, 1, 2)), adding(send(0, 3, 1, 2))};
  expect_finish(adding_storage(0, true), demand, sends, 2);
  expect_violation(adding_storage(0, true, false), demand, sends, {"rule 3", "link 3", "left to be sent on"});
  std::vector<Send> twice = sends;
  twice[1] = adding(send(0, 0, 1, 2));
  expect_violation(adding_storage(10 * kUs, true), demand, twice, {"rule"});
}

TEST(ReplaySums, AStoringSwitchAddsNothingTwice) {
  const Demand demand = custom(adding_storage(0, true), {sum_of({0, 1}, kUs, {2})});
  expect_violation(adding_storage(10 * kUs, true), demand,
                   {adding(send(0, 0, 0, 1)), adding(send(0, 0, 1, 2)), adding(send(0, 1, 0, 1)),
                    adding(send(0, 2, 2, 3))},
                   {"rule 10", "link 0", "adds the data of GPU 0", "switch 4"});
}

}  // namespace
}  // namespace rondo
