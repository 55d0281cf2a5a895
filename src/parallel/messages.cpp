#include "rondo/parallel/messages.hpp"

namespace rondo {

// Inlined, GCC 12 takes it for an overflow.
void MessageWriter::append(const void* data, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), first, first + size);
}

}  // namespace rondo
