#include "carried.hpp"

#include <algorithm>

namespace rondo::certificates {

double Carried::most(std::vector<Started>& starts, Wide bytes_per_us, Wide message_us, Wide apart_us) {
  starts_ = &starts;
  bytes_per_us_ = bytes_per_us;
  message_us_ = message_us;
  apart_us_ = apart_us;
  const std::size_t last = starts.size() - 1;
  for (std::size_t i = last; i-- > 0;) starts[i].bytes = std::min(starts[i].bytes, starts[i + 1].bytes);
  // A message of b bytes that starts at x has the rate b / (us(last) - x) at least.
  rates_.assign(starts.size(), 0);
  for (std::size_t i = 0; i < last; ++i)
    rates_[i + 1] = rates_[i] + (bytes(i + 1) - bytes(i)) / (us(last) - us(i));
  set_least(bytes(last));
  // What bytes take wherever messages start, which is what the first start as the first message's gives
  // where messages start as they like; then what they take of that. It is quick, and mostly near.
  apart_us_ = 0;
  std::size_t earliest = last;
  std::size_t best = last;
  while (earliest > 0) {
    set_from(--earliest);
    if (bytes(earliest) < least_) {
      const Wide some = fitting(earliest);
      if (some < least_) best = earliest;
      set_least(some);
    }
    // From an earlier start on there is more room, and no more of it is taken.
    if (bytes(earliest) == bytes(0) && bytes(behind_) == bytes(earliest)) break;
  }
  if (!(apart_us > 0) || !(message_us > 0)) return static_cast<double>(least_);
  apart_us_ = apart_us;
  if (best < last) lower_from(best);
  for (std::size_t i = earliest; i < last && bytes(i) < least_; ++i) lower_from(i);
  return static_cast<double>(least_);
}

/// To what fits from start i on, if that is less.
void Carried::lower_from(std::size_t i) {
  set_from(i);
  // Uphill from where most fitted last, which nearly always shows that so much fits again.
  first_ = std::clamp(first_, i, reached_ - 1);
  Wide most = fitting(first_);
  for (bool climbs = true; climbs && most < least_;) {
    climbs = false;
    for (const std::size_t k : {first_ - 1, first_ + 1}) {
      if (k + 1 <= i || k >= reached_) continue;
      const Wide some = fitting(k);
      if (!(some > most)) continue;
      most = some;
      first_ = k;
      climbs = true;
      break;
    }
  }
  if (most >= least_) return;
  for (std::size_t k = i; k < reached_ && most < least_; ++k) {
    // No better than the start before it.
    if (k > i && bytes(k + 1) == bytes(k)) continue;
    const Wide some = fitting(k);
    if (some > most) first_ = k;
    most = std::max(most, some);
  }
  if (most < least_) set_least(most);
}

void Carried::set_from(std::size_t i) {
  from_ = i;
  room_ = bytes_per_us_ * (starts_->back().us - us(i));
  const auto is_before = [&](const Started& start) { return start.us < us(i) + message_us_; };
  behind_ = static_cast<std::size_t>(
      std::partition_point(starts_->begin() + static_cast<std::ptrdiff_t>(i), starts_->end() - 1, is_before) -
      starts_->begin());
}

void Carried::set_least(Wide least) {
  least_ = least;
  reached_ = static_cast<std::size_t>(
      std::ranges::partition_point(*starts_, [&](const Started& start) { return start.bytes < least; }) -
      starts_->begin());
}

Wide Carried::weight(Wide start_us) const {
  return 1 + std::min(message_us_, start_us - us(from_)) / (starts_->back().us - start_us);
}

/// Bytes between two starts, where messages start as they like.
Wide Carried::taken_by_all(std::size_t i, std::size_t k) const {
  const std::size_t near = std::clamp(behind_, i, k);
  return (starts_->back().us - us(from_)) * (rates_[near] - rates_[i]) + (bytes(k) - bytes(near)) +
         message_us_ * (rates_[k] - rates_[near]);
}

Wide Carried::taken(std::size_t first, std::size_t k) const {
  const std::size_t second = std::min(first + 1, k);
  const Wide next_us = us(first) + apart_us_;
  const auto at = std::partition_point(starts_->begin() + static_cast<std::ptrdiff_t>(second),
                                       starts_->begin() + static_cast<std::ptrdiff_t>(k),
                                       [&](const Started& start) { return start.us < next_us; });
  const auto third = static_cast<std::size_t>(at - starts_->begin());
  Wide sum = (bytes(second) - bytes(from_)) * weight(us(first)) + taken_by_all(third, k);
  if (bytes(third) > bytes(second)) sum += (bytes(third) - bytes(second)) * weight(next_us);
  return sum;
}

Wide Carried::taken_by_one(std::size_t first, std::size_t k) const {
  return weight(k <= first ? us(first) : std::max(us(k), us(first) + apart_us_));
}

Wide Carried::fitting(std::size_t first) {
  ++work_;
  // What starts behind the first message, so late that it does not end in time, does not count.
  std::size_t end = reached_ - 1;
  if (us(first) + apart_us_ >= starts_->back().us) end = std::min(end, first);
  std::size_t k = end;
  const auto is_full = [&](std::size_t i) { return taken(first, i) > room_; };
  if (is_full(k)) {
    std::size_t fits = from_;
    while (k - fits > 1) {
      const std::size_t middle = fits + (k - fits) / 2;
      (is_full(middle) ? k : fits) = middle;
    }
    k = fits;
  }
  const Wide some = bytes(k) + (room_ - taken(first, k)) / taken_by_one(first, k);
  return std::min({least_, bytes(k + 1), some});
}

}  // namespace rondo::certificates
