#include "rondo/core/replay.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "sealed_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rondo::fuzz::read_as_file(data, size, -1, [](const auto& path) {
    const rondo::ProvenSchedule proven = rondo::read_schedule_hdf5(path);
    rondo::replay(proven.topology, proven.demand, proven.schedule.sends);
  });
  return 0;
}
