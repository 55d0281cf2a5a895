#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rondo/io/run_lock.hpp"

namespace rondo {

/// This process, with a new token.
LockOwner this_process();
/// The bytes of a lock file: always the same number, so that a heartbeat replaces them in place.
std::string to_text(const LockOwner& owner);
std::optional<LockOwner> parse_lock_owner(std::string_view text);

}  // namespace rondo
