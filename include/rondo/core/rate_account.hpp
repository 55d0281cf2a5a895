#pragma once

#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/usage_profile.hpp"

namespace rondo {

/// Transfers at a time on a link of a GPU: no limit, and what executors of schedules are good for.
inline constexpr int kAnyConcurrency = 0;
inline constexpr int kDefaultConcurrency = 8;

/// The rates of transfers on links that carry several at once, and in groups that share bandwidth
/// (FORMATS.md 3): they sum to at most the bandwidth, the first message_us of the sends on a link do not
/// overlap, and a link of a GPU carries at most `concurrency` transfers at a time. Links that are not shared
/// carry one transfer at a time, and whoever uses the account keeps their times.
class RateAccount {
 public:
  /// Read backwards, time runs from the finish to 0, and a send has its message at its end.
  enum class Reading { forwards, backwards };
  struct Interval {
    double start_us, end_us;
  };

  RateAccount(const Topology& topology, int concurrency, Reading reading = Reading::forwards);

  bool is_shared(LinkId link) const { return is_shared_[link.index()] != 0; }
  /// Whether anything limits when the link is used besides that it carries one transfer at a time.
  bool limits(LinkId link) const { return !of_link_[link.index()].empty(); }
  /// Shares the link from now on; what it carries already takes it alone.
  void share(LinkId link, std::span<const Interval> taken);

  /// A lower bound, and `start_us` itself where it is one, of the earliest start >= `start_us` over the link;
  /// infinity where a group's bandwidth is below the rate. `together`: all links of the transfer, of which
  /// those of a group that it takes at one time count together.
  double room_from(const HopLink& part, std::span<const HopLink> together, double start_us,
                   double occupied_us) const {
    return limits(part.link) ? limited_room_from(part, together, start_us, occupied_us) : start_us;
  }
  /// Of a shared link's bandwidth, what is left within [start_us, end_us).
  double share_left(LinkId link, double start_us, double end_us) const;
  void add(const HopLink& part, double start_us, double end_us) { change(part, start_us, end_us, 1); }
  /// Takes back what add() has added.
  void remove(const HopLink& part, double start_us, double end_us) { change(part, start_us, end_us, -1); }
  /// What ends on the link and in its groups before is not asked about any more.
  void forget(LinkId link, double before_us);

 private:
  enum class Kind { share, transfers, messages, group };
  struct Use {
    Kind kind;
    std::size_t profile;
  };
  struct Claim {
    double offset_us, occupied_us, amount;
  };
  double limited_room_from(const HopLink& part, std::span<const HopLink> together, double start_us,
                           double occupied_us) const;
  void change(const HopLink& part, double start_us, double end_us, double sign);
  Claim claim(Kind kind, const HopLink& part, double occupied_us) const;
  void account_for(LinkId link, Kind kind, double capacity);
  /// Of all links in the group of that profile which the transfer takes while it takes `part`.
  double rate_GBps(const HopLink& part, std::span<const HopLink> together, double occupied_us,
                   std::size_t profile) const;

  const Topology& topology_;
  int concurrency_;
  Reading reading_;
  std::vector<UsageProfile> profiles_;
  std::vector<std::vector<Use>> of_link_;
  std::vector<char> is_shared_;
};

}  // namespace rondo
