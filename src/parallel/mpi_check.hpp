#pragma once

#include <mpi.h>

#include <string>

#include "rondo/core/error.hpp"

namespace rondo {

/// Throws Error(internal) with the message of MPI unless `code` is success.
inline void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ExitCode::internal, std::string(call) + " failed: " + std::string(text, text + length));
}

}  // namespace rondo
