#pragma once

#include <vector>

#include "accept_or_refuse.hpp"
#include "memory_file.hpp"
#include "rondo/io/user_block.hpp"

namespace rondo::fuzz {

/// Calls `read` with a file of the input behind a right user block.
template <class Read>
void read_sealed(const std::uint8_t* data, std::size_t size, std::int64_t round, const Read& read) {
  std::vector<char> bytes(kUserBlockBytes + size);
  std::copy(data, data + size, bytes.begin() + kUserBlockBytes);
  seal_user_block(bytes, "0123456789abcdef", round);
  input_file().set_content(bytes);
  accept_or_refuse([&] { read(input_file().path()); });
}

}  // namespace rondo::fuzz
