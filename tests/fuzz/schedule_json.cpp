#include "accept_or_refuse.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/io/json_files.hpp"

/// A schedule as JSON, through the replay and its bound's certificate.
RONDO_FUZZ_TARGET(schedule_json)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::accept_or_refuse([&] {
    const ProvenSchedule proven = schedule_from_json(parse_json(fuzz::to_string(data, size), "input"));
    replay(proven.topology, proven.demand, proven.schedule.sends);
    if (proven.lower_bound) bound_of(proven.topology, proven.demand, proven.lower_bound->certificate);
  });
  return 0;
}
