#include "by_hand.hpp"

/// Rule 9: what is added up where.
namespace rondo::test_replay_sums {
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
  // At one time the copy is there before what it lacks, and after what it contains.
  sum.source_ready_us = {0, 1, 0};
  const Demand same = custom(topology, {sum});
  expect_finish(topology, same, {send(0, 0, 0, 1), adding(send(0, 1, 1, 2))}, 2);
  expect_violation(topology, same, {send(0, 0, 0.1, 1.1), adding(send(0, 1, 2, 3))}, {"rule 9", "GPU 1"});
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

}  // namespace
}  // namespace rondo::test_replay_sums
