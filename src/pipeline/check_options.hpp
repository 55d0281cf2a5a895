#pragma once

#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// The same as check_options() for a problem in even parts, of one collective on time.
void check_divided(const Problem& problem);

}  // namespace rondo
