#include <gtest/gtest.h>

#include <limits>

#include "expect_error.hpp"
#include "rondo/core/epoch_grid.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/units.hpp"

namespace rondo::test_epoch_grid {
namespace {

/// GPU 0 <-> GPU 1 at 50 GB/s, GPU 1 <-> GPU 2 at 25 GB/s, 0.7 us each: the two kinds of links of a DGX-1.
TopologyData dgx1_links() {
  TopologyData data;
  data.nodes.resize(3);
  data.links = {{NodeId(0), NodeId(1), 50, 0.7},
                {NodeId(1), NodeId(0), 50, 0.7},
                {NodeId(1), NodeId(2), 25, 0.7},
                {NodeId(2), NodeId(1), 25, 0.7}};
  return data;
}

/// AllGather in chunks of 25 KB.
Demand chunks_of_25_KB(int chunks = 1) {
  return make_demand(Collective::allgather, 75e3 * chunks, 3, chunks);
}

TEST(EpochGrid, OfTheFastestLink) {
  const EpochGrid grid = make_epoch_grid(Topology(dgx1_links()), chunks_of_25_KB(), {});
  EXPECT_DOUBLE_EQ(grid.tau_us, 0.5);
  EXPECT_DOUBLE_EQ(grid.chunk_bytes, 25e3);
  EXPECT_EQ(grid.occupancy, (std::vector<int>{1, 1, 2, 2}));
  EXPECT_EQ(grid.landing, (std::vector<int>{3, 3, 4, 4}));  // 1.2 / 0.5 and 1.7 / 0.5, rounded up
}

TEST(EpochGrid, MessageCostsAreOccupancy) {
  TopologyData data = dgx1_links();
  for (Link& link : data.links) link.message_us = 0.5;
  const EpochGrid grid = make_epoch_grid(Topology(data), chunks_of_25_KB(), {});
  EXPECT_DOUBLE_EQ(grid.tau_us, 1);
  EXPECT_EQ(grid.occupancy, (std::vector<int>{1, 1, 2, 2}));
  EXPECT_EQ(grid.landing, (std::vector<int>{2, 2, 3, 3}));  // 1.7 and 2.2, rounded up
  const Topology snapped = snap_to_grid(Topology(data), grid);
  for (const Link& link : snapped.links()) EXPECT_EQ(link.message_us, 0);
}

TEST(EpochGrid, OfTheSlowestLink) {
  const EpochGrid grid = make_epoch_grid(Topology(dgx1_links()), chunks_of_25_KB(),
                                         {.rule = EpochRule::slowest_link, .num_epochs = 9});
  EXPECT_DOUBLE_EQ(grid.tau_us, 1);
  EXPECT_EQ(grid.occupancy, (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(grid.landing, (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(grid.num_epochs, 9);
}

TEST(EpochGrid, MultipliedAndFixed) {
  const Topology topology(dgx1_links());
  const EpochGrid half = make_epoch_grid(topology, chunks_of_25_KB(), {.multiplier = 0.5});
  EXPECT_DOUBLE_EQ(half.tau_us, 0.25);
  EXPECT_EQ(half.occupancy, (std::vector<int>{2, 2, 4, 4}));
  // 0.5 / 0.1, 1.2 / 0.1 and 1.7 / 0.1 are whole but for rounding errors.
  const EpochGrid fixed =
      make_epoch_grid(topology, chunks_of_25_KB(), {.rule = EpochRule::fixed, .tau_us = 0.1});
  EXPECT_EQ(fixed.occupancy, (std::vector<int>{5, 5, 10, 10}));
  EXPECT_EQ(fixed.landing, (std::vector<int>{12, 12, 17, 17}));
}

TEST(EpochGrid, RefusesBadOptions) {
  const Topology topology(dgx1_links());
  const auto refuses = [&](const EpochOptions& options, const std::string& part) {
    expect_error(ExitCode::usage, {part}, [&] { make_epoch_grid(topology, chunks_of_25_KB(), options); });
  };
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    refuses({.multiplier = bad}, "multiplier is");
    refuses({.rule = EpochRule::fixed, .tau_us = bad}, "epoch (tau, us) is");
  }
  refuses({.num_epochs = -1}, "number of epochs is -1");
  expect_error(ExitCode::unavailable, {"more than 1000000 epochs"},
               [&] { make_epoch_grid(topology, chunks_of_25_KB(), {.multiplier = 1e-9}); });
}

TEST(EpochGrid, NeedsEqualChunks) {
  const Demand demand(Collective::custom, 30, 3,
                      {{.origin = GpuId(0), .bytes = 10, .destinations = {GpuId(1)}},
                       {.origin = GpuId(1), .bytes = 20, .destinations = {GpuId(0)}}},
                      1);
  expect_error(ExitCode::unavailable, {"chunks of one size"},
               [&] { make_epoch_grid(Topology(dgx1_links()), demand, {}); });
}

// Epochs of 0.5 us: what is ready at 1.5 us does not leave within three of them.
TEST(EpochGrid, NamesWhatIsReadyAfterTheEpochsAskedFor) {
  const auto waiting = [](double ready_us) {
    return Demand(Collective::custom, 50e3, 3,
                  {{.origin = GpuId(0), .bytes = 25e3, .destinations = {GpuId(1)}},
                   {.origin = GpuId(2), .bytes = 25e3, .destinations = {GpuId(1)}, .ready_us = ready_us}},
                  1);
  };
  const Topology topology(dgx1_links());
  EXPECT_EQ(make_epoch_grid(topology, waiting(1.4), {.num_epochs = 3}).num_epochs, 3);
  EXPECT_EQ(make_epoch_grid(topology, waiting(1.5), {}).num_epochs, 0);
  expect_error(ExitCode::unavailable, {"GPU 2", "1.5 us", "3 epochs of 0.5 us", "more epochs"},
               [&] { make_epoch_grid(topology, waiting(1.5), {.num_epochs = 3}); });
}

TEST(UpperBoundEpochs, OneChunkAfterTheOther) {
  const Topology topology(dgx1_links());
  const EpochGrid grid = make_epoch_grid(topology, chunks_of_25_KB(), {});
  // The chunk of GPU 0 takes 3 + 4 epochs to GPU 2, that of GPU 1 takes 4, that of GPU 2 4 + 3.
  EXPECT_EQ(upper_bound_epochs(topology, chunks_of_25_KB(), grid), 18);
  EXPECT_EQ(upper_bound_epochs(topology, chunks_of_25_KB(2), grid), 36);
}

TEST(UpperBoundEpochs, OneDestinationAfterTheOtherUnderSharedBandwidth) {
  TopologyData data = dgx1_links();
  data.shared_bandwidth = {{"bus", {LinkId(0), LinkId(2)}, 50}};
  const Topology topology(data);
  const EpochGrid grid = make_epoch_grid(topology, chunks_of_25_KB(), {});
  EXPECT_EQ(upper_bound_epochs(topology, chunks_of_25_KB(), grid), (3 + 7) + (3 + 4) + (4 + 7));
}

TEST(UpperBoundEpochs, WaitsForTheLastReadyTime) {
  const Topology topology(dgx1_links());
  const Demand demand(Collective::custom, 25e3, 3,
                      {{.origin = GpuId(0), .bytes = 25e3, .destinations = {GpuId(1)}, .ready_us = 1.2}}, 1);
  EXPECT_EQ(upper_bound_epochs(topology, demand, make_epoch_grid(topology, demand, {})), 3 + 3);
}

TEST(SnapToGrid, ChunksTakeWholeEpochs) {
  const Topology topology(dgx1_links());
  const EpochGrid grid = make_epoch_grid(topology, chunks_of_25_KB(), {});
  const Topology snapped = snap_to_grid(topology, grid);
  for (std::size_t l = 0; l < snapped.num_links(); ++l) {
    const Link& link = snapped.link(LinkId(l));
    const double occupied_us = transmission_us(grid.chunk_bytes, link.bandwidth_GBps);
    EXPECT_DOUBLE_EQ(occupied_us, grid.occupancy[l] * grid.tau_us);
    EXPECT_DOUBLE_EQ(occupied_us + link.latency_us, grid.landing[l] * grid.tau_us);
  }
  EXPECT_DOUBLE_EQ(snapped.link(LinkId(0)).latency_us, 1);  // landing 3, occupancy 1, of 0.5 us
  const EpochGrid again = make_epoch_grid(snapped, chunks_of_25_KB(), {});
  EXPECT_EQ(again.occupancy, grid.occupancy);
  EXPECT_EQ(again.landing, grid.landing);
}

}  // namespace
}  // namespace rondo::test_epoch_grid
