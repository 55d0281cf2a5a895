#pragma once

#include <cstddef>
#include <vector>

namespace rondo::certificates {

/// Times of knowledge: 64 bits of mantissa, and rounded outwards besides.
using Wide = long double;

/// A time, and the most bytes that messages have which start on a link before it.
struct Started {
  Wide us = 0;
  double bytes = 0;
};

/// The most bytes that cross a link by messages that start before the last of `starts`, which ascend, one or
/// more (F of certificate `knowledge`, FORMATS.md 3). From each start on the link has room for `bytes_per_us`
/// until the last one; what starts later than that takes of it, besides its bytes, what it does while
/// `message_us` pass (0: nothing). Lowers the bytes of `starts` to the least of them and all later ones.
class Carried {
 public:
  double most(std::vector<Started>& starts, Wide bytes_per_us, Wide message_us);

 private:
  std::vector<Wide> rates_;  ///< per start: of what can start before it, at least, to end in time
};

}  // namespace rondo::certificates
