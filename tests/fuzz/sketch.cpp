#include "accept_or_refuse.hpp"
#include "rondo/io/sketch_files.hpp"

/// TACCL's inputs: a sketch, and what it leaves of two fabrics; a profile, and one and two of its nodes.
RONDO_FUZZ_TARGET(sketch)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::accept_or_refuse([&] {
    const Json json = parse_json(fuzz::to_string(data, size), "input");
    fuzz::accept_or_refuse([&] {
      const NodeProfile profile = profile_from_json(json);
      constexpr int kMostGpus = 64;
      if (profile.gpus > kMostGpus) return;
      topology_of(profile, {});
      topology_of(profile, {.nodes = 2});
    });
    static const NodeProfile behind_a_switch{
        .name = "four", .gpus = 4, .nics = 2, .remote_alpha = 1, .remote_beta = 2, .switch_beta = 1};
    for (const int nodes : {1, 2}) {
      fuzz::accept_or_refuse([&] {
        const Sketch sketch = sketch_from_json(json, 4 * nodes);
        const Topology left =
            restricted(topology_of(behind_a_switch, {.nodes = nodes, .sketch = &sketch}), sketch);
        check_symmetry(left, sketch);
        if (left.num_gpus() != static_cast<std::size_t>(4 * nodes)) std::abort();
      });
    }
  });
  return 0;
}
