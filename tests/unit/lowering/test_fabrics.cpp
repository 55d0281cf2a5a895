#include <filesystem>

#include "rondo/msccl/xml.hpp"
#include "schedules.hpp"

/// Every shipped topology, and more GPUs: what is emitted is accepted, as it is written.
namespace rondo::test::test_fabrics {
namespace {

void expect_accepted(const Topology& topology, Collective collective, int chunks, bool in_place) {
  SCOPED_TRACE(topology.name() + (in_place ? " in place" : " out of place"));
  const Demand demand = make_demand(collective, 1e9, topology.num_gpus(), chunks);
  const ProvenSchedule proven = scheduled(topology, demand);
  LoweringOptions options = for_executor();
  options.in_place = in_place;
  const msccl::Program program = lowered(proven, options);
  EXPECT_EQ(msccl::parse_xml(msccl::write_xml(program)), program);
}

TEST(LoweringFabrics, EveryShippedOne) {
  int fabrics = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RONDO_SOURCE_DIR) / "jobs/topologies")) {
    const Topology topology = load_topology(entry.path().stem().string());
    if (topology.num_gpus() > 32) continue;
    expect_accepted(topology, Collective::allgather, 4, false);
    expect_accepted(topology, Collective::allgather, 4, true);
    expect_accepted(topology, Collective::alltoall, 1, false);
    ++fabrics;
  }
  EXPECT_GE(fabrics, 6);
}

TEST(LoweringFabrics, AllGatherOnATorusOf64) {
  expect_accepted(generate_topology("torus", {{"dims", "8x8"}}), Collective::allgather, 4, false);
}

}  // namespace
}  // namespace rondo::test::test_fabrics
