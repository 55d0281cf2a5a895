#include "rondo/core/replay.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "sealed_file.hpp"

/// HDF5 of a schedule behind a right user block, then its replay.
RONDO_FUZZ_TARGET(schedule_file)(const std::uint8_t* data, std::size_t size) {
  rondo::fuzz::read_sealed(data, size, -1, [](const auto& path) {
    const rondo::ProvenSchedule proven = rondo::read_schedule_hdf5(path);
    rondo::replay(proven.topology, proven.demand, proven.schedule.sends);
  });
  return 0;
}
