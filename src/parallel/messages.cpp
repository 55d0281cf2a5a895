#include "rondo/parallel/messages.hpp"

namespace rondo {
namespace {

constexpr std::size_t kLong = std::size_t{1} << 24;  ///< bytes

}  // namespace

// Inlined, GCC 12 takes it for an overflow.
void MessageWriter::append(const void* data, std::size_t size) {
  // Little is left over beside what is long.
  const std::size_t needed = bytes_.size() + size;
  if (needed > bytes_.capacity() && needed > kLong) bytes_.reserve(needed + needed / 8);
  const auto* first = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), first, first + size);
}

}  // namespace rondo
