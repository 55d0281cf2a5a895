#include "rondo/io/round_files.hpp"
#include "sealed_file.hpp"

/// HDF5 of a round behind a right user block.
RONDO_FUZZ_TARGET(round_file)(const std::uint8_t* data, std::size_t size) {
  rondo::fuzz::read_sealed(data, size, 0, [](const auto& path) { rondo::read_round_file(path); });
  return 0;
}
