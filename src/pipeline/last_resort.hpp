#pragma once

#include <string>

#include "rondo/pipeline/synthesize.hpp"

namespace rondo {

/// What makes a schedule when a time limit comes before any other engine has found one.
struct LastResort {
  std::string engine;
  double sends;  ///< whose closing takes as long as making, replaying and writing its schedule; 0: unknown
};

LastResort last_resort(const Problem& problem);

}  // namespace rondo
