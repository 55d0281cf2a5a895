#pragma once

#include <cstring>
#include <type_traits>

#include "rondo/parallel/communicator.hpp"

/// Plain values one after another, for messages between ranks of one program.
namespace rondo {

class Packer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof(T));
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(const Bytes& bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

 private:
  const Bytes& bytes_;
  std::size_t at_ = 0;
};

}  // namespace rondo
