#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/parallel/communicator.hpp"

/// Messages between the ranks of one job: plain values in sequence, in the byte order of the machine.
///
/// A struct that is not plain is sent member by member; its namespace names the members once for writing and
/// reading:
///
///   auto members_of(SameAs<Example> auto& e) { return std::tie(e.number, e.name, e.parts); }
namespace rondo {

/// Also where const.
template <class T, class Struct>
concept SameAs = std::same_as<std::remove_const_t<T>, Struct>;

template <class T>
concept HasMembers = requires(T& value) {
  members_of(value);
};

template <class T>
concept IsOptional = requires(const T& value) {
  value.has_value();
};

template <class T>
concept IsMap = requires {
  typename T::mapped_type;
};

class MessageWriter {
 public:
  /// Makes room for so many bytes in all.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
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
  /// A plain value, a struct with members_of(), or an optional, vector, string or map of what can be written.
  template <class T>
  void write(const T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      put(value);
    } else if constexpr (HasMembers<const T>) {
      std::apply([this](const auto&... members) { (write(members), ...); }, members_of(value));
    } else if constexpr (IsOptional<T>) {
      put(value.has_value());
      if (value) write(*value);
    } else if constexpr (IsMap<T>) {
      put(static_cast<std::uint64_t>(value.size()));
      for (const auto& [key, mapped] : value) {
        write(key);
        write(mapped);
      }
    } else if constexpr (std::is_trivially_copyable_v<typename T::value_type>) {
      put_all(std::span<const typename T::value_type>(value));
    } else {
      put(static_cast<std::uint64_t>(value.size()));
      for (const auto& element : value) write(element);
    }
  }

  Bytes take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size);

  Bytes bytes_;
};

/// Reads the values in the same order. Throws Error(bad_data) where there are no more bytes: a process that
/// reads a hostile file may send anything.
class MessageReader {
 public:
  explicit MessageReader(const Bytes& bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    T value;
    copy_out(&value, sizeof(T));
    return value;
  }
  /// A std::vector or a std::string that put_all() has written.
  template <class Values>
  Values get_all() {
    using Value = typename Values::value_type;
    const auto count = get<std::uint64_t>();
    if (count > (bytes_.size() - at_) / sizeof(Value)) refuse();
    Values values(static_cast<std::size_t>(count), Value{});
    copy_out(values.data(), values.size() * sizeof(Value));
    return values;
  }
  /// What write() wrote.
  template <class T>
  void read(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      value = get<T>();
    } else if constexpr (HasMembers<T>) {
      std::apply([this](auto&... members) { (read(members), ...); }, members_of(value));
    } else if constexpr (IsOptional<T>) {
      if (get<bool>()) read(value.emplace());
    } else if constexpr (IsMap<T>) {
      for (auto n = get<std::uint64_t>(); n > 0; --n) {
        typename T::key_type key{};
        read(key);
        read(value[std::move(key)]);
      }
    } else if constexpr (std::is_trivially_copyable_v<typename T::value_type>) {
      value = get_all<T>();
    } else {
      const auto count = get<std::uint64_t>();
      if (count > bytes_.size() - at_) refuse();
      value.resize(static_cast<std::size_t>(count));
      for (auto& element : value) read(element);
    }
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

template <class T>
Bytes to_message(const T& value) {
  MessageWriter message;
  message.write(value);
  return message.take();
}

template <class T>
T from_message(const Bytes& bytes) {
  T value;
  MessageReader(bytes).read(value);
  return value;
}

}  // namespace rondo
