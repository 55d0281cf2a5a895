#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "accept_or_refuse.hpp"
#include "rondo/io/user_block.hpp"

namespace rondo::fuzz {

/// Calls `read` with a file made of the input: as it is where its first byte is even, so that the user block
/// is read; behind a right user block otherwise, so that the reader of HDF5 is.
template <class Read>
void read_as_file(const std::uint8_t* data, std::size_t size, std::int64_t round, const Read& read) {
  static const std::filesystem::path path =
      std::filesystem::path("/dev/shm") / ("rondo-fuzz-" + std::to_string(::getpid()) + ".h5");
  const bool seal = size > 0 && data[0] % 2 == 1;
  std::vector<char> bytes(seal ? kUserBlockBytes : 0);
  if (size > 0) bytes.insert(bytes.end(), data + 1, data + size);
  if (seal) seal_user_block(bytes, "0123456789abcdef", round);
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<long>(bytes.size()));
  accept_or_refuse([&] { read(path); });
}

}  // namespace rondo::fuzz
