#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rondo/core/error.hpp"
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

/// Takes them off again in the same order. Throws Error(bad_data) where there are no more bytes: a process
/// that a hostile file has in its hands may say anything.
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
    using Value = typename Values::value_type;
    const auto count = get<std::uint64_t>();
    if (count > (bytes_.size() - at_) / sizeof(Value)) refuse();
    Values values(static_cast<std::size_t>(count), Value{});
    copy_out(values.data(), values.size() * sizeof(Value));
    return values;
  }

 private:
  void copy_out(void* data, std::size_t size) {
    if (size > bytes_.size() - at_) refuse();
    if (size > 0) std::memcpy(data, bytes_.data() + at_, size);
    at_ += size;
  }

  [[noreturn]] static void refuse() { throw Error(ExitCode::bad_data, "a message ends too early"); }

  const Bytes& bytes_;
  std::size_t at_ = 0;
};

}  // namespace rondo
