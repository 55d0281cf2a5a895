#include "rondo/io/user_block.hpp"

#include "accept_or_refuse.hpp"
#include "memory_file.hpp"

/// The first 512 bytes of a round or schedule file, and the checksum of the rest.
RONDO_FUZZ_TARGET(user_block)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::input_file().set_content({reinterpret_cast<const char*>(data), size});
  fuzz::accept_or_refuse([&] { verify_user_block(fuzz::input_file().path()); });
  return 0;
}
