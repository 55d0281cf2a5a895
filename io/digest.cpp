#include "digest.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

#include "rondo/io/files.hpp"

namespace rondo {

Digest::Digest() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void Digest::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void Digest::add(const void* data, std::size_t size) {
  XXH3_64bits_update(state_.get(), data, size);
}

std::string Digest::text() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_.get()));
}

std::string digest_of(const void* data, std::size_t size) {
  Digest digest;
  digest.add(data, size);
  return digest.text();
}

std::string digest_of(const std::string& text) {
  return digest_of(text.data(), text.size());
}

}  // namespace rondo
