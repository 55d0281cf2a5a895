#include "accept_or_refuse.hpp"
#include "rondo/io/machine.hpp"

/// The output of `nvidia-smi -L` and `nvidia-smi topo -m`.
RONDO_FUZZ_TARGET(nvidia_smi)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::accept_or_refuse([&] { topology_of(parse_nvidia_smi(fuzz::to_string(data, size), "input")); });
  return 0;
}
