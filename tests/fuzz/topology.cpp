#include "accept_or_refuse.hpp"
#include "rondo/io/json_files.hpp"

/// A topology file: what is accepted has to come back from its own text.
RONDO_FUZZ_TARGET(topology)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::accept_or_refuse([&] {
    const Topology topology = topology_from_json(parse_json(fuzz::to_string(data, size), "input"));
    const std::string text = format_json(topology_to_json(topology));
    if (format_json(topology_to_json(topology_from_json(parse_json(text, "output")))) != text) std::abort();
  });
  return 0;
}
