#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "rondo/core/error.hpp"

/// The head of a target: what libFuzzer calls, or where one program has them all a function of the target's
/// name.
#ifdef RONDO_FUZZ
#define RONDO_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#else
#define RONDO_FUZZ_TARGET(name) extern "C" int rondo_fuzz_##name
#endif

namespace rondo::fuzz {

inline std::string to_string(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// What `read` may do with any input: succeed, or throw an Error that blames the input. Anything else ends
/// the fuzzer.
template <class Read>
void accept_or_refuse(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    switch (error.code()) {
      case ExitCode::usage:
      case ExitCode::bad_data:
      case ExitCode::no_input:
      case ExitCode::unavailable:
        return;
      default:
        std::cerr << "blamed on something else than the input: " << error.what() << std::endl;
        std::abort();
    }
  }
}

}  // namespace rondo::fuzz
