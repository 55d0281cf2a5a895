#include "accept_or_refuse.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/io/json_files.hpp"

/// A demand file for four GPUs in a ring: what is accepted has to come back from its own text.
RONDO_FUZZ_TARGET(demand)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  static const Topology ring = generate_topology("ring", {{"gpus", "4"}});
  fuzz::accept_or_refuse([&] {
    const Demand demand = demand_from_json(parse_json(fuzz::to_string(data, size), "input"), ring, 1);
    const Json again = demand_to_json(demand);
    if (demand_to_json(demand_from_json(again, ring, 1)) != again) std::abort();
  });
  return 0;
}
