#include "by_hand.hpp"

/// Rule 10: switches that add.
namespace rondo::test_replay_sum_switches {
namespace {

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

TEST(ReplaySumSwitches, ACutThroughSwitchAddsInOneTransfer) {
  const Topology topology = adding_star(true);
  const Demand demand = custom(topology, {sum_of({0, 1, 2, 3}, kUs, {2, 3})});
  const Demand without = custom(topology, {sum_of({0, 1}, kUs, {2, 3})});
  expect_finish(topology, without, through_switch(), 1);
  expect_violation(topology, demand, through_switch(), {"rule 7", "never includes GPU 3"});
  expect_violation(adding_star(false), without, through_switch(),
                   {"rule 10", "link 0", "switch 4 may not add"});
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

TEST(ReplaySumSwitches, AddedSendsEnterAtOneInstant) {
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

TEST(ReplaySumSwitches, ASwitchAddsNothingTwice) {
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

TEST(ReplaySumSwitches, SeveralSumsGoTogether) {
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

TEST(ReplaySumSwitches, ASumPassesAPlainSwitch) {
  // 0 -> switch -> 1: op is that of the send that enters a GPU.
  const auto fabric_with = [](bool reduce) {
    Fabric fabric(2);
    const int sw = fabric.cut_through(false, reduce);
    fabric.link(0, sw);
    fabric.link(sw, 1);
    return fabric.build();
  };
  const Topology topology = fabric_with(false);
  const Demand demand = custom(topology, {sum_of({0, 1}, kUs, {1})});
  expect_finish(topology, demand, {send(0, 0, 0, 1), adding(send(0, 1, 0, 1))}, 1);
  expect_violation(topology, demand, {send(0, 0, 0, 1), send(0, 1, 0, 1)}, {"rule 9", "GPU 1"});
  expect_violation(topology, demand, {adding(send(0, 1, 0, 1))}, {"rule 4", "link 1"});
  // A switch that may not add is not told to.
  const std::vector<Send> told = {adding(send(0, 0, 0, 1)), adding(send(0, 1, 0, 1))};
  expect_violation(topology, demand, told, {"rule 10", "link 0", "switch 2 may not add"});
  expect_finish(fabric_with(true), demand, told, 1);
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

TEST(ReplaySumSwitches, AStoringSwitchAddsWhatHasArrived) {
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
  const Send a0 = send(0, 0, 0, 1);
  const Send b0 = send(0, 1, 2, 3);
  expect_violation(adding_storage(2 * kUs, false), demand, {a0, b0, onward},
                   {"rule 5", "link 1", "switch 4"});
  expect_finish(adding_storage(2 * kUs, false), demand, {a0, b0, onward, adding(send(0, 2, 4, 5))}, 5);
  expect_violation(adding_storage(2 * kUs, false), demand, {a, b0, onward},
                   {"rule 10", "link 0", "may not add"});
  // So does copy (0).
  expect_violation(topology, demand, {a, send(0, 1, 2, 3), onward}, {"rule"});
  expect_finish(adding_storage(2 * kUs, true), demand,
                {a, send(0, 1, 2, 3), onward, adding(send(0, 2, 4, 5))}, 5);
}

TEST(ReplaySumSwitches, ASumThatHasBegunToLeaveIsClosed) {
  const Demand demand = custom(adding_storage(0, true), {sum_of({0, 1}, kUs, {2})});
  const std::vector<Send> sends = {adding(send(0, 0, 0, 1)), adding(send(0, 1, 2, 3)),
                                   adding(send(0, 2, 1, 2)), adding(send(0, 2, 3, 4))};
  expect_finish(adding_storage(0, true), demand, sends, 4);
  expect_finish(adding_storage(0, true, false), demand, sends, 4);
}

TEST(ReplaySumSwitches, AStoringSwitchCopiesASum) {
  const Demand demand = custom(adding_storage(0, true), {sum_of({0, 1}, kUs, {2, 3})});
  const std::vector<Send> sends = {adding(send(0, 0, 0, 1)), adding(send(0, 1, 0, 1)),
                                   adding(send(0, 2, 1, 2)), adding(send(0, 3, 1, 2))};
  expect_finish(adding_storage(0, true), demand, sends, 2);
  expect_violation(adding_storage(0, true, false), demand, sends, {"rule 3", "link 3", "left to be sent on"});
  std::vector<Send> twice = sends;
  twice[1] = adding(send(0, 0, 1, 2));
  expect_violation(adding_storage(10 * kUs, true), demand, twice, {"rule"});
}

TEST(ReplaySumSwitches, AStoringSwitchAddsNothingTwice) {
  const Demand demand = custom(adding_storage(0, true), {sum_of({0, 1}, kUs, {2})});
  expect_violation(adding_storage(10 * kUs, true), demand,
                   {adding(send(0, 0, 0, 1)), adding(send(0, 0, 1, 2)), adding(send(0, 1, 0, 1)),
                    adding(send(0, 2, 2, 3))},
                   {"rule 10", "link 0", "adds the data of GPU 0", "switch 4"});
}

}  // namespace
}  // namespace rondo::test_replay_sum_switches
