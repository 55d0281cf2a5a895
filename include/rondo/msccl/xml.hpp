#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rondo/msccl/program.hpp"

namespace rondo::msccl {

/// What a reader takes at most.
struct XmlLimits {
  std::size_t bytes = std::size_t{256} << 20;
  std::size_t elements = 4'000'000;
};

/// Reads MSCCL XML of any producer. The file has to be algo > gpu > tb > step, with every attribute of
/// FORMATS.md 5 but redop and nthreads, whole numbers where numbers stand, GPU ids 0..ngpus-1 and threadblock
/// ids 0..n-1 once each (in any order), and steps numbered 0, 1, 2... as they stand. Unknown attributes are
/// passed over, unknown elements are not. Whether the program is any good is for xmlcheck.
/// Throws Error(bad_data) with line or place, value and remedy; Error(unavailable) beyond `limits`.
Program parse_xml(std::string_view text, const XmlLimits& limits = {});

/// The file of a program.
std::string write_xml(const Program& program);

}  // namespace rondo::msccl
