#include "rondo/core/rate_account.hpp"

#include <algorithm>

#include "rondo/core/time_slack.hpp"

namespace rondo {

RateAccount::RateAccount(const Topology& topology, int concurrency, Reading reading)
    : topology_(topology),
      concurrency_(concurrency),
      reading_(reading),
      of_link_(topology.num_links()),
      is_shared_(topology.num_links(), 0) {
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    for (const LinkId l : group.links) of_link_[l.index()].push_back({Kind::group, profiles_.size()});
    profiles_.emplace_back(group.bandwidth_GBps);
  }
}

void RateAccount::account_for(LinkId link, Kind kind, double capacity) {
  of_link_[link.index()].push_back({kind, profiles_.size()});
  profiles_.emplace_back(capacity);
}

void RateAccount::share(LinkId link, std::span<const Interval> taken) {
  is_shared_[link.index()] = 1;
  const Link& data = topology_.link(link);
  account_for(link, Kind::share, 1);
  UsageProfile& shares = profiles_.back();
  for (const Interval& interval : taken) shares.add(interval.start_us, interval.end_us, 1);
  const bool is_of_gpu = topology_.is_gpu(data.src) || topology_.is_gpu(data.dst);
  if (is_of_gpu && concurrency_ != kAnyConcurrency) account_for(link, Kind::transfers, concurrency_);
  if (data.message_us > 0) account_for(link, Kind::messages, 1);
}

RateAccount::Claim RateAccount::claim(Kind kind, const HopLink& part, double occupied_us) const {
  switch (kind) {
    case Kind::transfers:
      return {0, occupied_us, 1};
    case Kind::messages: {
      const double message_us = topology_.link(part.link).message_us;
      return {reading_ == Reading::forwards ? 0 : occupied_us - message_us, message_us, 1};
    }
    case Kind::group:
      return {0, occupied_us, part.rate_GBps()};
    case Kind::share:
      break;
  }
  return {0, occupied_us, part.share};
}

double RateAccount::rate_GBps(const HopLink& part, std::span<const HopLink> together, double occupied_us,
                              std::size_t profile) const {
  const double bytes = std::max(0.0, occupied_us - part.message_us) / part.us_per_byte;
  const double from_us = part.offset_us_of(bytes);
  double sum = 0;
  for (const HopLink& other : together) {
    const double other_from_us = other.offset_us_of(bytes);
    const bool is_beside = other_from_us < from_us + occupied_us - time_slack_us(from_us + occupied_us) &&
                           from_us < other_from_us + other.occupied_us(bytes) - time_slack_us(other_from_us);
    const auto is_it = [&](const Use& use) { return use.profile == profile; };
    if ((is_beside || &other == &part) && std::ranges::any_of(of_link_[other.link.index()], is_it))
      sum += other.rate_GBps();
  }
  return sum;
}

double RateAccount::limited_room_from(const HopLink& part, std::span<const HopLink> together, double start_us,
                                      double occupied_us) const {
  for (const Use& use : of_link_[part.link.index()]) {
    Claim c = claim(use.kind, part, occupied_us);
    if (use.kind == Kind::group && together.size() > 1)
      c.amount = rate_GBps(part, together, occupied_us, use.profile);
    start_us =
        std::max(start_us, profiles_[use.profile].room_from(start_us + c.offset_us, c.occupied_us, c.amount) -
                               c.offset_us);
  }
  return start_us;
}

double RateAccount::share_left(LinkId link, double start_us, double end_us) const {
  double left = 1;
  for (const Use& use : of_link_[link.index()]) {
    if (use.kind == Kind::share) left -= profiles_[use.profile].most_used(start_us, end_us);
  }
  return left;
}

void RateAccount::change(const HopLink& part, double start_us, double end_us, double sign) {
  for (const Use& use : of_link_[part.link.index()]) {
    const Claim c = claim(use.kind, part, end_us - start_us);
    const double from_us = start_us + c.offset_us;
    profiles_[use.profile].add(from_us, from_us + c.occupied_us, sign * c.amount);
  }
}

void RateAccount::forget(LinkId link, double before_us) {
  for (const Use& use : of_link_[link.index()]) profiles_[use.profile].forget(before_us);
}

}  // namespace rondo
