#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rondo/parallel/communicator.hpp"

/// What ranks of one job say to each other: plain values one after another, in this machine's byte order.
namespace rondo {

class MessageWriter {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof(T));
  }
  /// Their number and then the values.
  template <class T>
  void put_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<std::uint64_t>(values.size()));
    append(values.data(), values.size_bytes());
  }
  template <class T>
  void put_all(const std::vector<T>& values) {
    put_all(std::span<const T>(values));
  }
  void put_all(std::string_view text) { put_all(std::span<const char>(text)); }

  Bytes take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }

  Bytes bytes_;
};

/// Takes them off again in the same order.
class MessageReader {
 public:
  explicit MessageReader(const Bytes& bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    T value;
    copy_out(&value, sizeof(T));
    return value;
  }
  /// A std::vector or a std::string of what put_all() put.
  template <class Values>
  Values get_all() {
    Values values(static_cast<std::size_t>(get<std::uint64_t>()), typename Values::value_type{});
    copy_out(values.data(), values.size() * sizeof(typename Values::value_type));
    return values;
  }

 private:
  void copy_out(void* data, std::size_t size) {
    assert(size <= bytes_.size() - at_);
    if (size > 0) std::memcpy(data, bytes_.data() + at_, size);
    at_ += size;
  }

  const Bytes& bytes_;
  std::size_t at_ = 0;
};

}  // namespace rondo
