#include "accept_or_refuse.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/machine.hpp"

/// NCCL's topology XML: the machine alone and two of them, which have to be topologies that can be written
/// and read again.
RONDO_FUZZ_TARGET(nccl_xml)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::accept_or_refuse([&] {
    const Machine machine = parse_nccl_xml(fuzz::to_string(data, size), "input");
    for (const char* network : {"rails", "leaf_spine:nodes_per_leaf=1"}) {
      fuzz::accept_or_refuse([&] {
        const std::string text = format_json(topology_to_json(compose(machine, 2, network)));
        if (format_json(topology_to_json(topology_from_json(parse_json(text, "output")))) != text)
          std::abort();
      });
    }
    topology_of(machine);
  });
  return 0;
}
