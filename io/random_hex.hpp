#pragma once

#include <string>

namespace rondo {

/// 16 hex digits from the system's source of randomness: part of a name that nobody can guess.
std::string random_hex();

}  // namespace rondo
