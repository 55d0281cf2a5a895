#pragma once

#include <optional>

#include "rondo/core/collective.hpp"

namespace rondo {

/// Of a demand by counts: the same with each contribution cut into parts, as many as it has times the mean of
/// all in it, of a custom one as many times the least, so that chunks are about equal and a large
/// contribution goes many ways. Nothing where that cuts none.
std::optional<Demand> in_even_parts(const Demand& demand);

}  // namespace rondo
