#include "grouping.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "rondo/core/demand_shapes.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/late_sums.hpp"
#include "rondo/core/near_groups.hpp"
#include "rondo/core/units.hpp"
#include "rondo/engines/exchange.hpp"

namespace rondo {
namespace {

using Groups = std::vector<std::vector<GpuId>>;

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Beyond them tables of all pairs take long, and bytes count more than latency.
constexpr std::size_t kMostGpusInGroups = 256;
/// Distances that differ by less are taken for equal.
constexpr double kSameDistance = 1e-9;
/// Sets of GPUs in the middle, by how far the others are from them.
constexpr std::size_t kMostCentres = 4;
/// What counts, as measured, of the time for the bytes: of steps that are not the longest one, in slices; of
/// halves, where much of it passes while latencies do; of GPUs in the middle, around which links are full.
constexpr double kShareOfSteps = 0.5;
constexpr double kShareOfHalves = 0.35;
constexpr double kShareOfCentres = 1.2;
/// Of the bytes: takes next to no time.
constexpr double kNextToNothing = 1e-6;
constexpr int kMostChunksToTell = 16;  ///< of a part

std::vector<int> prime_factors(std::size_t count) {
  std::vector<int> factors;
  for (std::size_t factor = 2; count > 1; ++factor) {
    for (; count % factor == 0; count /= factor) factors.push_back(static_cast<int>(factor));
  }
  return factors;
}

/// Removes the one of the least time, if that is finite.
template <class Time>
std::optional<GpuId> taken(std::vector<GpuId>& from, const Time& us) {
  const auto least = std::ranges::min_element(from, {}, us);
  if (least == from.end() || us(*least) == kNever) return std::nullopt;
  const GpuId gpu = *least;
  from.erase(least);
  return gpu;
}

class Grouper {
 public:
  Grouper(const Topology& topology, const Demand& demand)
      : topology_(topology),
        demand_(demand),
        members_(demand.contributions().front().sources),
        hops_(topology),
        relay_us_(hops_.relay_distance_us(0)) {
    for (const Contribution& c : demand.contributions()) bytes_ += c.bytes;
    for (const Hop& hop : hops_.hops()) {
      double& us = hop_us_.try_emplace({hop.src, hop.dst}, kNever).first->second;
      us = std::min(us, hop.duration_us(bytes_a_member()));
    }
  }

  Groupings run() {
    // Where messages cost, those to the middle and back are more, which gained next to nothing anywhere.
    if (!topology_.has_message_costs()) add_centres();
    add_chassis();
    add_near_ones();
    std::ranges::stable_sort(found_, {}, &Grouping::about_us);
    return {*weighed({{members_}, {members_}, {members_}}), std::move(found_)};
  }

 private:
  /// What steps take for next to no bytes, and for the bytes besides.
  struct Takes {
    double latency_us = 0;
    double bytes_us = 0;
  };

  double bytes_a_member() const { return bytes_ / static_cast<double>(members_.size()); }
  double relay_us(GpuId from, GpuId to) const {
    return relay_us_[from.index() * hops_.num_gpus() + to.index()];
  }
  double hop_us(GpuId from, GpuId to) const {
    const auto known = hop_us_.find({from, to});
    return known == hop_us_.end() ? kNever : known->second;
  }

  /// Those that are nearest to all others, and less near ones besides, but for the farthest.
  void add_centres() {
    std::map<double, std::vector<GpuId>> by_distance;
    for (const GpuId g : members_) {
      double us = 0;
      for (const GpuId other : members_) us = std::max({us, relay_us(g, other), relay_us(other, g)});
      const auto above = by_distance.lower_bound(us * (1 - kSameDistance));
      const bool is_known = above != by_distance.end() && above->first <= us * (1 + kSameDistance);
      by_distance[is_known ? above->first : us].push_back(g);
    }
    std::vector<GpuId> centres;
    for (const auto& [us, gpus] : by_distance) {
      centres.insert(centres.end(), gpus.begin(), gpus.end());
      if (centres.size() == members_.size() || found_.size() == kMostCentres) return;
      std::ranges::sort(centres);
      add({{members_}, {centres}, {centres}});
    }
  }

  void add_chassis() {
    std::map<int, std::vector<GpuId>> by_chassis;
    for (const GpuId g : members_) {
      const auto& chassis = topology_.node(topology_.node_of(g)).chassis;
      if (!chassis) return;
      by_chassis[*chassis].push_back(g);
    }
    Groups groups;
    for (const auto& [chassis, gpus] : by_chassis) groups.push_back(gpus);
    add_groups(std::move(groups));
  }

  void add_near_ones() {
    const std::vector<int> radices = prime_factors(members_.size());
    const auto order = ordered_by_nearness(hops_, members_, radices, bytes_a_member());
    if (!order) return;
    std::size_t size = 1;
    for (const int radix : radices) {
      size *= index(radix);
      Groups groups;
      for (auto first = order->begin(); first != order->end(); first += static_cast<std::ptrdiff_t>(size)) {
        groups.emplace_back(first, first + static_cast<std::ptrdiff_t>(size));
        std::ranges::sort(groups.back());
      }
      add_groups(std::move(groups));
    }
  }

  void add_groups(Groups groups) {
    const std::size_t size = groups.front().size();
    if (groups.size() < 2 || size < 2) return;
    if (std::ranges::any_of(groups, [&](const auto& group) { return group.size() != size; })) return;
    std::ranges::sort(groups);
    if (!seen_.insert(groups).second) return;
    const Groups adders = in_line(groups);
    add({groups, adders, adders, true});
    if (!add({groups, adders, adders})) add_with_takers(groups);
  }

  /// Each group's GPUs in the order of those of the first group that they are nearest to.
  Groups in_line(const Groups& groups) const {
    Groups lines{groups.front()};
    for (std::size_t g = 1; g < groups.size(); ++g) {
      std::vector<GpuId> left = groups[g];
      std::vector<GpuId>& line = lines.emplace_back();
      for (const GpuId like : lines.front()) {
        const auto nearest = std::ranges::min_element(
            left, {}, [&](GpuId gpu) { return std::max(hop_us(like, gpu), hop_us(gpu, like)); });
        line.push_back(*nearest);
        left.erase(nearest);
      }
    }
    return lines;
  }

  /// GPUs with a hop to every other group.
  std::vector<GpuId> senders_of(const Groups& groups, std::size_t g) const {
    std::vector<GpuId> senders;
    std::ranges::copy_if(groups[g], std::back_inserter(senders), [&](GpuId from) {
      for (std::size_t other = 0; other < groups.size(); ++other) {
        const auto is_reached = [&](GpuId to) { return hop_us(from, to) < kNever; };
        if (other != g && std::ranges::none_of(groups[other], is_reached)) return false;
      }
      return true;
    });
    return senders;
  }

  /// Each sender of the first group with those that its hops lead to, the senders nearest to these, and who
  /// takes what they send.
  void add_with_takers(const Groups& groups) {
    Groups senders;
    for (std::size_t g = 0; g < groups.size(); ++g) senders.push_back(senders_of(groups, g));
    Groups may_take = groups;
    Grouping grouping{groups, Groups(groups.size()), Groups(groups.size())};
    for (const GpuId first : senders.front()) {
      grouping.adders.front().push_back(first);
      for (std::size_t g = 1; g < groups.size(); ++g) {
        const auto taker = taken(may_take[g], [&](GpuId to) { return hop_us(first, to); });
        if (!taker) return;
        const auto sender = taken(senders[g], [&](GpuId from) { return relay_us(from, *taker); });
        if (!sender) return;
        grouping.takers[g].push_back(*taker);
        grouping.adders[g].push_back(*sender);
      }
      const auto own = taken(may_take.front(), [&](GpuId to) {
        double us = 0;
        for (std::size_t g = 1; g < groups.size(); ++g)
          us = std::max(us, hop_us(grouping.adders[g].back(), to));
        return us;
      });
      if (!own) return;
      grouping.takers.front().push_back(*own);
    }
    if (grouping.num_parts() > 0) add(std::move(grouping));
  }

  /// Whether its parts can be exchanged.
  bool add(Grouping grouping) {
    std::optional<Grouping> known = weighed(std::move(grouping));
    if (!known) return false;
    found_.push_back(*std::move(known));
    return true;
  }

  std::optional<Grouping> weighed(Grouping grouping) const {
    Takes gathers;
    Takes spreads;
    for (std::size_t g = 0; g < grouping.groups.size(); ++g) {
      const std::vector<GpuId>& group = grouping.groups[g];
      const double messages_take_us = messages_us(group);
      gathers.latency_us = std::max(gathers.latency_us, messages_take_us);
      take_longer(gathers, group, grouping.adders[g], &Topology::out_links,
                  [&](GpuId gpu, GpuId adder) { return relay_us(gpu, adder); });
      if (grouping.tells) continue;
      spreads.latency_us = std::max(spreads.latency_us, messages_take_us);
      take_longer(spreads, group, grouping.takers[g], &Topology::in_links,
                  [&](GpuId gpu, GpuId taker) { return relay_us(taker, gpu); });
    }
    const std::optional<Takes> exchanges =
        grouping.tells ? telling_takes(grouping) : exchange_takes(grouping);
    if (!exchanges) return std::nullopt;
    grouping.latency_us = gathers.latency_us + exchanges->latency_us + spreads.latency_us;
    double bytes_us = gathers.bytes_us + exchanges->bytes_us + spreads.bytes_us;
    if (grouping.groups.size() > 1) {
      const double longest_us = std::max({gathers.bytes_us, exchanges->bytes_us, spreads.bytes_us});
      bytes_us = kShareOfSteps * bytes_us + (1 - kShareOfSteps) * longest_us;
    } else {
      bytes_us *= grouping.num_parts() == std::ssize(members_) ? kShareOfHalves : kShareOfCentres;
    }
    grouping.about_us = grouping.latency_us + bytes_us;
    return grouping;
  }

  /// Until a GPU of the group has heard from all others by messages that each bring all that is known where
  /// they come from: over k links it has heard from k + 1 times as many after each.
  double messages_us(const std::vector<GpuId>& group) const {
    if (!topology_.has_message_costs()) return 0;
    double message_us = kNever;
    std::size_t most_links = 0;
    for (const GpuId gpu : group) {
      std::set<LinkId> links_into;
      for (const int h : hops_.into(gpu)) {
        const Hop& hop = hops_.hop(h);
        if (!std::ranges::binary_search(group, hop.src)) continue;
        links_into.insert(hop.links.back().link);
        for (const HopLink& link : hop.links) message_us = std::min(message_us, link.message_us);
      }
      most_links = std::max(most_links, links_into.size());
    }
    if (most_links == 0 || message_us == 0) return 0;
    int rounds = 0;
    for (std::size_t heard = 1; heard < group.size(); heard *= most_links + 1) ++rounds;
    return rounds * message_us;
  }

  /// For every GPU of a group to send something to all of `some`, or take it from there.
  template <class Links, class Distance>
  void take_longer(Takes& takes, const std::vector<GpuId>& group, const std::vector<GpuId>& some,
                   const Links& links, const Distance& distance_us) const {
    const auto parts = static_cast<double>(some.size());
    for (const GpuId gpu : group) {
      for (const GpuId other : some) takes.latency_us = std::max(takes.latency_us, distance_us(gpu, other));
      double GBps = 0;
      for (const LinkId l : (topology_.*links)(topology_.node_of(gpu)))
        GBps += topology_.link(l).bandwidth_GBps;
      const double others = parts - static_cast<double>(std::ranges::count(some, gpu));
      takes.bytes_us = std::max(takes.bytes_us, transmission_us(bytes_ * others / parts, GBps));
    }
  }

  /// Finds how many chunks a part has to have, so that all is told before much has been heard.
  std::optional<Takes> telling_takes(Grouping& grouping) const {
    const auto finish_us = [&](const Demand& demand) {
      const auto told =
          tell_by_copies({topology_, hops_, grouping.exchanging(), grouping.chunks, demand}, grouping.groups);
      return told ? told->finish_us : kNever;
    };
    for (; grouping.chunks <= kMostChunksToTell; grouping.chunks *= 2) {
      const Demand demand = demand_.with_chunks(grouping.num_parts() * grouping.chunks);
      const double us = finish_us(demand);
      if (us == kNever) continue;
      const double latency_us = finish_us(demand.with_size(kNextToNothing * demand.size_bytes()));
      if (latency_us < kNever) return Takes{latency_us, us - latency_us};
    }
    return std::nullopt;
  }

  std::optional<Takes> exchange_takes(const Grouping& grouping) const {
    if (grouping.groups.size() == 1) return Takes{};
    const auto finish_us = [&](const Demand& demand) {
      const ExchangeProblem problem{topology_, hops_, grouping.exchanging(), 1,
                                    demand,    0,     grouping.is_in_pairs()};
      const auto levels =
          best_levels(problem, ordered_factorisations(static_cast<int>(grouping.groups.size())));
      return levels ? levels->finish_us : kNever;
    };
    const Demand parts = demand_.with_chunks(grouping.num_parts());
    const double latency_us = finish_us(parts.with_size(kNextToNothing * parts.size_bytes()));
    if (latency_us == kNever) return std::nullopt;
    // Parts of more bytes may find links taken for so long that no groups of theirs are joined in time.
    const double us = finish_us(parts);
    return us == kNever ? std::nullopt : std::optional(Takes{latency_us, us - latency_us});
  }

  const Topology& topology_;
  const Demand& demand_;
  std::vector<GpuId> members_;
  HopTable hops_;
  std::vector<double> relay_us_;
  double bytes_ = 0;  ///< of the sums
  std::map<std::pair<GpuId, GpuId>, double> hop_us_ = {};
  std::set<Groups> seen_ = {};
  std::vector<Grouping> found_ = {};
};

}  // namespace

std::vector<std::vector<GpuId>> Grouping::exchanging() const {
  std::vector<std::vector<GpuId>> by_part(adders.front().size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t p = 0; p < by_part.size(); ++p) {
      by_part[p].push_back(adders[g][p]);
      if (is_in_pairs()) by_part[p].push_back(takers[g][p]);
    }
  }
  return by_part;
}

std::optional<Groupings> groupings_of(const Topology& topology, const Demand& demand) {
  if (!is_plain_all_reduce(demand) || has_late_sums(demand) || topology.num_gpus() > kMostGpusInGroups)
    return std::nullopt;
  return Grouper(topology, demand).run();
}

}  // namespace rondo
