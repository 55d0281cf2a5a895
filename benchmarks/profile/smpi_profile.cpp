// The profiler of `rondo profile` as a program for SimGrid's SMPI: the same sources, without the rest of
// Rondo, most of whose libraries speak another MPI. Arguments: the topology to write, the figures to write.
#include <cstdio>
#include <exception>
#include <fstream>

#include "rondo/io/json_files.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/profile/profile.hpp"

int main(int argc, char** argv) {
  rondo::MpiSession session(&argc, &argv);
  const auto communicator = rondo::make_world_communicator();
  try {
    if (argc != 3) throw std::runtime_error("usage: smpi_profile TOPOLOGY.json FIGURES.tsv");
    const auto wire = rondo::profile::make_mpi_wire(*communicator);
    const rondo::profile::FabricProfile measured = rondo::profile::measure_fabric(*wire, {});
    if (communicator->is_root()) {
      std::ofstream(argv[1]) << rondo::topology_to_json(rondo::profile::to_topology(measured, "smpi")).dump(1)
                             << "\n";
      std::ofstream(argv[2]) << rondo::profile::to_tsv(measured);
      std::fputs(rondo::profile::describe(measured).c_str(), stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "smpi_profile: %s\n", error.what());
    return 1;
  }
  return 0;
}
