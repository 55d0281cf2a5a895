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
/// until the last one. What starts later takes of it, besides its bytes, what it does while `message_us` pass
/// (0: nothing); messages start `apart_us` after one another (0: as they like).
class Carried {
 public:
  /// Lowers the bytes of `starts` to the least of them and all later ones.
  double most(std::vector<Started>& starts, Wide bytes_per_us, Wide message_us, Wide apart_us);
  /// Sums looked at so far.
  std::size_t work() const { return work_; }

 private:
  /// All from start `from_` on, where the first message starts at `first` or later, but before the next
  /// start: what of the room the bytes up to start `k` take; what each of those just behind it does; and how
  /// many fit, `least_` at most.
  Wide taken(std::size_t first, std::size_t k) const;
  Wide taken_by_one(std::size_t first, std::size_t k) const;
  Wide fitting(std::size_t first);

  Wide weight(Wide us) const;
  Wide taken_by_all(std::size_t i, std::size_t k) const;
  Wide us(std::size_t i) const { return (*starts_)[i].us; }
  Wide bytes(std::size_t i) const { return (*starts_)[i].bytes; }
  void lower_from(std::size_t i);
  void set_from(std::size_t i);
  void set_least(Wide least);

  const std::vector<Started>* starts_ = nullptr;
  Wide bytes_per_us_ = 0;
  Wide message_us_ = 0;
  Wide apart_us_ = 0;
  std::vector<Wide> rates_ = {};  ///< per start: of what can start before it, at least, to end in time
  Wide least_ = 0;                ///< of what is looked at so far
  std::size_t reached_ = 0;       ///< the first start before which so many may have started
  std::size_t first_ = 0;         ///< where most fitted
  std::size_t from_ = 0;
  std::size_t behind_ = 0;  ///< the first start a whole message cost after it, or the last start
  Wide room_ = 0;
  std::size_t work_ = 0;
};

}  // namespace rondo::certificates
