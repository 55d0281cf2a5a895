#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// What a piece of work came to: bytes, or the error that every rank is to see alike.
struct Outcome {
  Bytes value = {};
  std::optional<Error> error = std::nullopt;
};

/// Exceptions other than Error become Error(internal), so that no rank leaves the others waiting.
Outcome run_guarded(const std::function<Bytes()>& work);

/// Appends plain values and outcomes to a message, in this machine's byte order: messages never leave the
/// job.
class MessageWriter {
 public:
  template <class T>
  void put(const T& value) {
    append(&value, sizeof value);
  }
  void put_outcome(const Outcome& outcome);
  Bytes take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size);

  Bytes bytes_;
};

/// Takes them off again in the same order.
class MessageReader {
 public:
  explicit MessageReader(const Bytes& bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value;
    copy_out(&value, sizeof value);
    return value;
  }
  Outcome get_outcome();

 private:
  void copy_out(void* data, std::size_t size);

  const Bytes& bytes_;
  std::size_t at_ = 0;
};

}  // namespace rondo
