#include "carried.hpp"

#include <algorithm>

namespace rondo::certificates {

double Carried::most(std::vector<Started>& starts, Wide bytes_per_us, Wide message_us, Wide apart_us,
                     Tightest& tightest) {
  starts_ = &starts;
  bytes_per_us_ = bytes_per_us;
  message_us_ = message_us;
  for (std::size_t i = last(); i-- > 0;) starts[i].bytes = std::min(starts[i].bytes, starts[i + 1].bytes);
  find_rates();
  behind_ = reached_ = last();
  set_least(bytes(last()));
  // What bytes take wherever messages start, which is what the first start as the first message's gives
  // where messages start as they like; then what they take of that. It is quick, and mostly near.
  apart_us_ = 0;
  if (tightest.start < last()) lower_side_by_side(tightest.start);
  const std::size_t earliest = first_that_counts();
  for (std::size_t i = earliest; i < last() && bytes(i) < least_; i = next_behind(i, last())) {
    if (lower_side_by_side(i)) tightest.start = i;
  }
  if (!(apart_us > 0) || !(message_us > 0)) return static_cast<double>(least_);
  apart_us_ = apart_us;
  find_next_messages();
  first_ = tightest.first;
  if (tightest.start < last()) lower_from(tightest.start);
  for (std::size_t i = earliest; i < last() && bytes(i) < least_; i = next_behind(i, first_ + 1))
    lower_from(i);
  tightest.first = first_;
  return static_cast<double>(least_);
}

/// From an earlier one on there is more room, and no more of it is taken.
std::size_t Carried::first_that_counts() const {
  std::size_t increases = 0;
  while (increases < last() && bytes(increases + 1) == bytes(0)) ++increases;
  std::size_t first = 0;
  while (first < increases && us(first + 1) + message_us_ <= us(increases)) ++first;
  return first;
}

/// The next start from which it is not clear that `least_` fits since it does from start i on, `most` at the
/// latest: as no more of the room is taken from it on, what is left has to make up for there being less.
std::size_t Carried::next_behind(std::size_t i, std::size_t most) const {
  const Wide until_us = us(i) + std::max(Wide{0}, left_) / bytes_per_us_;
  ++i;
  while (i < most && us(i) <= until_us) ++i;
  return i;
}

/// A message of b bytes that starts at x has the rate b / (us(last) - x) at least.
void Carried::find_rates() {
  rates_.assign(starts_->size(), 0);
  for (std::size_t i = 0; i < last(); ++i) {
    rates_[i + 1] = rates_[i];
    if (bytes(i + 1) > bytes(i)) rates_[i + 1] += (bytes(i + 1) - bytes(i)) / (us(last()) - us(i));
  }
}

void Carried::find_next_messages() {
  next_message_.assign(starts_->size(), last());
  std::size_t next = 0;
  for (std::size_t i = 0; i < last(); ++i) {
    while (next < last() && us(next) < us(i) + apart_us_) ++next;
    next_message_[i] = next;
  }
}

/// To what fits from start i on where messages start as they like. Returns whether that is less.
bool Carried::lower_side_by_side(std::size_t i) {
  set_from(i);
  if (!(bytes(i) < least_)) return false;
  const Wide some = fitting(i);
  if (!(some < least_)) return false;
  set_least(some);
  return true;
}

/// To what fits from start i on, if that is less.
void Carried::lower_from(std::size_t i) {
  if (!(bytes(i) < least_)) return;
  set_from(i);
  // Uphill from where most fitted last, which nearly always shows that so much fits again.
  std::size_t best = std::clamp(first_, i, reached_ - 1);
  Wide most = fitting(best);
  for (bool climbs = true; climbs && most < least_;) {
    climbs = false;
    for (const std::size_t k : {best - 1, best + 1}) {
      if (k + 1 <= i || k >= reached_) continue;
      const Wide some = fitting(k);
      if (!(some > most)) continue;
      most = some;
      best = k;
      climbs = true;
      break;
    }
  }
  for (std::size_t k = i; k < reached_ && most < least_; ++k) {
    // No better than the start before it.
    if (k > i && bytes(k + 1) == bytes(k)) continue;
    const Wide some = fitting(k);
    if (some > most) best = k;
    most = std::max(most, some);
  }
  first_ = best;
  if (most < least_) set_least(most);
}

void Carried::set_from(std::size_t i) {
  from_ = i;
  room_ = bytes_per_us_ * (us(last()) - us(i));
  const Wide until_us = us(i) + message_us_;
  behind_ = std::max(behind_, i);
  while (behind_ > i && us(behind_ - 1) >= until_us) --behind_;
  while (behind_ < last() && us(behind_) < until_us) ++behind_;
}

void Carried::set_least(Wide least) {
  least_ = least;
  left_ = 0;
  while (reached_ > 0 && bytes(reached_ - 1) >= least) --reached_;
}

Wide Carried::weight(Wide start_us) const {
  const Wide shared_us = std::min(message_us_, start_us - us(from_));
  return shared_us > 0 ? 1 + shared_us / (us(last()) - start_us) : 1;
}

/// Bytes between two starts, where messages start as they like.
Wide Carried::taken_by_all(std::size_t i, std::size_t k) const {
  const std::size_t near = std::clamp(behind_, i, k);
  return (us(last()) - us(from_)) * (rates_[near] - rates_[i]) + (bytes(k) - bytes(near)) +
         message_us_ * (rates_[k] - rates_[near]);
}

void Carried::set_first(std::size_t first) {
  first_ = first;
  second_us_ = us(first) + apart_us_;
  first_weight_ = weight(us(first));
  // Where it would not end in time, nothing of it counts.
  second_weight_ = apart_us_ > 0 && second_us_ < us(last()) ? weight(second_us_) : first_weight_;
}

Wide Carried::taken(std::size_t k) const {
  const std::size_t second = std::min(first_ + 1, k);
  const std::size_t third = apart_us_ > 0 ? std::clamp(next_message_[first_], second, k) : second;
  return (bytes(second) - bytes(from_)) * first_weight_ + (bytes(third) - bytes(second)) * second_weight_ +
         taken_by_all(third, k);
}

Wide Carried::taken_by_one(std::size_t k) const {
  if (k <= first_) return first_weight_;
  return us(k) > second_us_ ? weight(us(k)) : second_weight_;
}

Wide Carried::fitting(std::size_t first) {
  ++work_;
  set_first(first);
  // What starts behind the first message, so late that it does not end in time, does not count.
  std::size_t k = reached_ - 1;
  if (second_us_ >= us(last())) k = std::min(k, first);
  Wide sum = taken(k);
  if (sum > room_) {
    std::size_t fits = from_;
    sum = 0;
    while (k - fits > 1) {
      const std::size_t middle = fits + (k - fits) / 2;
      const Wide up_to_middle = taken(middle);
      if (up_to_middle > room_) {
        k = middle;
      } else {
        fits = middle;
        sum = up_to_middle;
      }
    }
    k = fits;
  }
  const Wide by_one = taken_by_one(k);
  const Wide some = bytes(k) + (room_ - sum) / by_one;
  left_ = room_ - sum - (least_ - bytes(k)) * by_one;
  return std::min({least_, bytes(k + 1), some});
}

}  // namespace rondo::certificates
