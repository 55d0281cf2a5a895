#include "rondo/core/version.hpp"

namespace rondo {

const char* producer() {
  return "rondo " RONDO_VERSION;
}

const char* version() {
  return RONDO_VERSION;
}

}  // namespace rondo
