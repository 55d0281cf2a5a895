// On which of these fabrics of 16 GPUs does AllGather of 16 MB end first? A lower bound rules out most of
// them without solving; the rest is solved, verified and compared.
#include <cstdio>
#include <memory>
#include <optional>
#include <rondo/rondo.hpp>

int main() {
  try {
    const auto communicator = rondo::make_local_communicator();
    std::optional<rondo::ProvenSchedule> best;
    for (const char* fabric : {"ndv2-2", "torus:dims=4x4", "hypercube:dimensions=4", "ring:gpus=16"}) {
      const auto topology = std::make_shared<const rondo::Topology>(rondo::load_topology(fabric));
      rondo::Problem problem{topology, rondo::make_demand(*topology, "allgather", rondo::parse_size("16MB"))};
      problem.options.engine = "list";
      problem.options.chunks = 2;
      const double bound_us = rondo::bound(problem, {*communicator}).best().us;
      std::printf("%s: at least %.1f us", fabric, bound_us);
      if (best && bound_us >= best->schedule.finish_us) {
        std::printf(", ruled out\n");
        continue;
      }
      const rondo::ProvenSchedule proven = rondo::synthesize(problem, {*communicator}).proven;
      rondo::verify(proven);
      std::printf(", verified schedule of %.1f us\n", proven.schedule.finish_us);
      if (!best || proven.schedule.finish_us < best->schedule.finish_us) best = proven;
    }
    rondo::write_schedule("best.h5", *best);
    std::printf("best: %s\n", best->topology.name().c_str());
  } catch (const rondo::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
