#pragma once

#include <functional>
#include <optional>

#include "rondo/core/error.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

/// The result of a piece of work: bytes, or the error that every rank throws.
struct Outcome {
  Bytes value = {};
  std::optional<Error> error = std::nullopt;
};

/// Exceptions other than Error become Error(internal), so that no rank leaves the others waiting.
Outcome run_guarded(const std::function<Bytes()>& work);

void put_outcome(MessageWriter& message, const Outcome& outcome);
Outcome get_outcome(MessageReader& message);

}  // namespace rondo
