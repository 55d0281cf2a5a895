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

/// The start from which the fewest bytes fitted, and the first message's with which they were most: next time
/// it is likely to be the same.
struct Tightest {
  std::size_t start = 0;
  std::size_t first = 0;
};

/// The most bytes that cross a link by messages that start before the last of `starts`, which ascend, one or
/// more (F of certificate `knowledge`, FORMATS.md 3). From each start on the link has room for `bytes_per_us`
/// until the last one. What starts later takes of it, besides its bytes, what it does while `message_us` pass
/// (0: nothing); messages start `apart_us` after one another (0: as they like).
class Carried {
 public:
  /// Lowers the bytes of `starts` to the least of them and all later ones. `tightest` only saves work.
  double most(std::vector<Started>& starts, Wide bytes_per_us, Wide message_us, Wide apart_us,
              Tightest& tightest);
  /// Sums looked at so far.
  std::size_t work() const { return work_; }

 private:
  /// How many bytes fit from start `from_` on, `least_` at most, where the first message starts at `first` or
  /// later, but before the next start.
  Wide fitting(std::size_t first);
  /// What of the room the bytes up to start `k` take; what each of those just behind it does.
  Wide taken(std::size_t k) const;
  Wide taken_by_one(std::size_t k) const;

  Wide weight(Wide us) const;
  Wide taken_by_all(std::size_t i, std::size_t k) const;
  Wide us(std::size_t i) const { return (*starts_)[i].us; }
  Wide bytes(std::size_t i) const { return (*starts_)[i].bytes; }
  std::size_t last() const { return starts_->size() - 1; }
  std::size_t first_that_counts() const;
  std::size_t next_behind(std::size_t i, std::size_t most) const;
  void find_rates();
  void find_next_messages();
  bool lower_side_by_side(std::size_t i);
  void lower_from(std::size_t i);
  void set_from(std::size_t i);
  void set_first(std::size_t first);
  void set_least(Wide least);

  const std::vector<Started>* starts_ = nullptr;
  Wide bytes_per_us_ = 0;
  Wide message_us_ = 0;
  Wide apart_us_ = 0;
  std::vector<Wide> rates_ = {};  ///< per start: of what can start before it, at least, to end in time
  std::vector<std::size_t> next_message_ =
      {};                    ///< per start: the first one that a message behind it may have
  Wide least_ = 0;           ///< of what is looked at so far
  std::size_t reached_ = 0;  ///< the first start before which so many may have started
  std::size_t from_ = 0;
  std::size_t behind_ = 0;  ///< the first start a whole message cost after it, or the last start
  Wide room_ = 0;
  Wide left_ = 0;  ///< of the room, where `least_` fits
  std::size_t first_ = 0;
  Wide second_us_ = 0;      ///< the second message starts then or later
  Wide first_weight_ = 1;   ///< of a byte of the first message
  Wide second_weight_ = 1;  ///< of one that starts at `second_us_`
  std::size_t work_ = 0;
};

}  // namespace rondo::certificates
