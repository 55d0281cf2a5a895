#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "rondo/core/insertion_timetable.hpp"

namespace rondo::test_insertion_timetable {
namespace {

using Reading = InsertionTimetable::Reading;

/// GPU 0 -> 1 -> 2, 1 GB/s, 1 us; 1e3 bytes take 1 us on a link.
Topology line(std::vector<SharedBandwidth> shared = {}) {
  return Topology{TopologyData{"line",
                               "",
                               std::vector<Node>(3),
                               {{NodeId{0}, NodeId{1}, 1, 1}, {NodeId{1}, NodeId{2}, 1, 1}},
                               std::move(shared)}};
}

Hop hop_over(const Topology& topology, int link) {
  return make_hop(topology, std::vector<LinkId>{LinkId{link}});
}

TEST(InsertionTimetable, FillsWhatIsLeftFree) {
  const Topology topology = line();
  const Hop hop = hop_over(topology, 0);
  InsertionTimetable timetable(topology, Reading::forwards);
  timetable.reserve(hop, 4e3, 0);   // [0, 4)
  timetable.reserve(hop, 4e3, 10);  // [10, 14)
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 6e3, 0), 4);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 7e3, 0), 14);
  timetable.reserve(hop, 6e3, 4);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 1e3, 0), 14);
}

TEST(InsertionTimetable, KeepsLinksForMessageCosts) {
  TopologyData data = line().data();
  for (Link& link : data.links) link.message_us = 0.5;
  const Topology topology(std::move(data));
  const Hop hop = hop_over(topology, 0);
  for (const Reading reading : {Reading::forwards, Reading::backwards}) {
    InsertionTimetable timetable(topology, reading);
    timetable.reserve(hop, 4e3, 0);  // 4.5 us
    timetable.reserve(hop, 4e3, 10);
    EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 5e3, 0), 4.5);
    EXPECT_DOUBLE_EQ(timetable.earliest_start(hop, 5.1e3, 0), 14.5);
  }
}

TEST(InsertionTimetable, SharesBandwidth) {
  const Topology topology = line({{"nic", {LinkId{0}, LinkId{1}}, 1}});
  InsertionTimetable timetable(topology, Reading::forwards);
  timetable.reserve(hop_over(topology, 0), 4e3, 2);  // [2, 6)
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop_over(topology, 1), 2e3, 0), 0);
  EXPECT_DOUBLE_EQ(timetable.earliest_start(hop_over(topology, 1), 3e3, 0), 6);
}

}  // namespace
}  // namespace rondo::test_insertion_timetable
