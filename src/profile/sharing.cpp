#include "sharing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "rondo/core/units.hpp"

namespace rondo::profile {
namespace {

using Members = std::vector<std::size_t>;

constexpr double kLeastUs = 500;     ///< of a transfer that others are timed beside
constexpr double kLatencies = 40;    ///< or so many times what a message without bytes takes
constexpr double kMostBytes = 64e6;  ///< of one of its messages
constexpr int kTries = 2;            ///< noise only ever slows down: the fastest try counts
constexpr int kMoreTries = 6;        ///< where it looks as if links shared
constexpr std::size_t kBatch = 256;  ///< rounds whose times are exchanged at once
constexpr std::size_t kMostAtOnce = 24;
constexpr double kSameSpeed = 1.1;

class Meter {
 public:
  Meter(Wire& wire, const ProfileOptions& options, const std::vector<LinkFigures>& links)
      : wire_(wire), options_(options), links_(links), alone_us_(links.size()) {
    double least_us = kLeastUs;
    for (const LinkFigures& link : links)
      least_us = std::max(least_us, kLatencies * (link.answer_us + link.message_us.value));
    for (const LinkFigures& link : links) {
      const double bytes = least_us * link.GBps.value * kBytesPerUsPerGBps;
      bytes_.push_back(static_cast<std::int64_t>(std::min(bytes, kMostBytes)));
    }
    std::vector<Members> each;
    for (std::size_t l = 0; l < links.size(); ++l) each.push_back({l});
    const auto times = fastest(each, kTries + 1);
    for (std::size_t l = 0; l < links.size(); ++l) alone_us_[l] = times[l].front();
  }

  /// How many times as long as alone the slowest of them takes, for each set of links.
  std::vector<double> slowdowns(const std::vector<Members>& sets, int tries) {
    std::vector<double> result;
    const auto times = fastest(sets, tries);
    for (std::size_t s = 0; s < sets.size(); ++s) {
      double most = 0;
      for (std::size_t k = 0; k < sets[s].size(); ++k)
        most = std::max(most, times[s][k] / alone_us_[sets[s][k]]);
      result.push_back(most);
    }
    return result;
  }

  /// Bytes over the time of the slowest, less what it takes without bytes.
  double rate_GBps(const Members& set) {
    const auto times = fastest({set}, kMoreTries).front();
    double bytes = 0;
    double us = 0;
    for (std::size_t k = 0; k < set.size(); ++k) {
      const LinkFigures& link = links_[set[k]];
      bytes += static_cast<double>(bytes_[set[k]]);
      // On a machine that does other work, what it takes without bytes may come out longer than all of it.
      const double without = std::max(0.0, link.answer_us) + link.message_us.value;
      us = std::max(us, times[k] - std::min(without, times[k] / 2));
    }
    return algorithm_bandwidth_GBps(bytes, us);
  }

 private:
  std::vector<std::vector<double>> fastest(const std::vector<Members>& sets, int tries) {
    std::vector<std::vector<double>> result;
    for (std::size_t begin = 0; begin < sets.size(); begin += kBatch) {
      std::vector<Round> rounds;
      for (std::size_t s = begin; s < std::min(begin + kBatch, sets.size()); ++s) {
        Round round{.flows = {}, .repetitions = tries};
        for (const std::size_t l : sets[s])
          round.flows.push_back({links_[l].from, links_[l].to, 1, bytes_[l]});
        rounds.push_back(std::move(round));
      }
      for (const auto& flows : wire_.time_us(rounds)) {
        result.emplace_back();
        for (const auto& times : flows) result.back().push_back(*std::ranges::min_element(times));
      }
    }
    return result;
  }

  Wire& wire_;
  const ProfileOptions& options_;
  const std::vector<LinkFigures>& links_;
  std::vector<std::int64_t> bytes_;
  std::vector<double> alone_us_;
};

/// Which pairs of links are slower together than alone.
std::vector<std::vector<bool>> sharing_pairs(Meter& meter, const ProfileOptions& options, std::size_t links) {
  std::vector<Members> pairs;
  for (std::size_t a = 0; a < links; ++a) {
    for (std::size_t b = a + 1; b < links; ++b) pairs.push_back({a, b});
  }
  options.progress(fmt::format("{} pairs of links together", pairs.size()));
  const std::vector<double> first = meter.slowdowns(pairs, kTries);
  std::vector<Members> suspects;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if (first[p] > options.slower) suspects.push_back(pairs[p]);
  }
  options.progress(fmt::format("{} of them again", suspects.size()));
  const std::vector<double> again = meter.slowdowns(suspects, kMoreTries);
  std::vector<std::vector<bool>> share(links, std::vector<bool>(links, false));
  for (std::size_t s = 0; s < suspects.size(); ++s) {
    const bool slower = again[s] > options.slower;
    share[suspects[s][0]][suspects[s][1]] = slower;
    share[suspects[s][1]][suspects[s][0]] = slower;
  }
  return share;
}

/// Every pair that shares is in one of the sets; in a set, all share with all, and no other link does.
std::vector<Members> cover_by_cliques(const std::vector<std::vector<bool>>& share) {
  std::vector<Members> cliques;
  auto covered = std::vector(share.size(), std::vector<bool>(share.size(), false));
  for (std::size_t a = 0; a < share.size(); ++a) {
    for (std::size_t b = a + 1; b < share.size(); ++b) {
      if (!share[a][b] || covered[a][b]) continue;
      Members clique = {a, b};
      for (std::size_t c = 0; c < share.size(); ++c) {
        if (std::ranges::all_of(clique, [&](std::size_t member) { return share[member][c]; }))
          clique.push_back(c);
      }
      for (const std::size_t i : clique) {
        for (const std::size_t k : clique) covered[i][k] = true;
      }
      std::ranges::sort(clique);
      cliques.push_back(std::move(clique));
    }
  }
  return cliques;
}

/// At most kMostAtOnce of them, from all over.
Members sample(const Members& members) {
  if (members.size() <= kMostAtOnce) return members;
  Members some;
  for (std::size_t k = 0; k < kMostAtOnce; ++k) some.push_back(members[k * members.size() / kMostAtOnce]);
  return some;
}

/// Links of one speed at a time, and all of them: where speeds differ, the slow ones end alone.
double capacity_GBps(Meter& meter, const std::vector<LinkFigures>& links, const Members& members) {
  double most = meter.rate_GBps(sample(members));
  Members by_speed = members;
  const auto speed = [&](std::size_t l) { return links[l].GBps.value; };
  std::ranges::stable_sort(by_speed, std::greater<>{}, speed);
  for (std::size_t begin = 0; begin < by_speed.size();) {
    std::size_t end = begin + 1;
    while (end < by_speed.size() && speed(by_speed[begin]) <= kSameSpeed * speed(by_speed[end])) ++end;
    if (end - begin >= 2 && end - begin < by_speed.size()) {
      Members same(by_speed.begin() + static_cast<std::ptrdiff_t>(begin),
                   by_speed.begin() + static_cast<std::ptrdiff_t>(end));
      std::ranges::sort(same);
      most = std::max(most, meter.rate_GBps(sample(same)));
    }
    begin = end;
  }
  // What one of them has alone, the group has.
  for (const std::size_t l : members) most = std::max(most, speed(l));
  return most;
}

std::string ranks_text(const std::set<int>& ranks) {
  std::string text;
  for (auto it = ranks.begin(); it != ranks.end();) {
    const int first = *it;
    int last = first;
    while (++it != ranks.end() && *it == last + 1) last = *it;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

std::string name_of(const std::vector<LinkFigures>& links, const Members& members) {
  std::set<int> from;
  std::set<int> to;
  for (const std::size_t l : members) {
    from.insert(links[l].from);
    to.insert(links[l].to);
  }
  return fmt::format("from {} to {}", ranks_text(from), ranks_text(to));
}

/// What the known groups let the links have together, at least: each group's excess taken off its members.
double explained_GBps(const std::vector<LinkFigures>& links, const std::vector<SharedGroup>& groups,
                      const Members& members) {
  std::vector<double> rate(links.size(), 0.0);
  for (const std::size_t l : members) rate[l] = links[l].GBps.value;
  for (const SharedGroup& group : groups) {
    double sum = 0;
    for (const std::size_t l : group.links) sum += rate[l];
    if (sum <= group.GBps) continue;
    for (const std::size_t l : group.links) rate[l] *= group.GBps / sum;
  }
  return std::accumulate(rate.begin(), rate.end(), 0.0);
}

}  // namespace

std::vector<SharedGroup> find_groups(Wire& wire, const ProfileOptions& options,
                                     const std::vector<LinkFigures>& links) {
  Meter meter(wire, options, links);
  std::vector<SharedGroup> groups;
  const std::vector<Members> cliques = cover_by_cliques(sharing_pairs(meter, options, links.size()));
  options.progress(fmt::format("{} groups as a whole", cliques.size()));
  for (const Members& clique : cliques) {
    groups.push_back({name_of(links, clique), clique, capacity_GBps(meter, links, clique)});
  }
  return groups;
}

std::vector<SharedGroup> find_wide_groups(Wire& wire, const ProfileOptions& options,
                                          const std::vector<LinkFigures>& links,
                                          const std::vector<SharedGroup>& known,
                                          const std::vector<int>& cluster) {
  Meter meter(wire, options, links);
  const int clusters = 1 + *std::ranges::max_element(cluster);
  const auto of = [&](int rank) { return cluster[static_cast<std::size_t>(rank)]; };
  std::vector<Members> candidates;
  const auto add = [&](const auto& belongs) {
    Members members;
    for (std::size_t l = 0; l < links.size(); ++l) {
      if (belongs(links[l])) members.push_back(l);
    }
    if (members.size() > 2) candidates.push_back(std::move(members));
  };
  for (int c = 0; c < clusters && clusters > 1; ++c) {
    add([&](const LinkFigures& link) { return of(link.from) == c && of(link.to) != c; });
    add([&](const LinkFigures& link) { return of(link.from) != c && of(link.to) == c; });
  }
  add([&](const LinkFigures& link) { return clusters == 1 || of(link.from) != of(link.to); });

  options.progress(fmt::format("{} sets of links at once", candidates.size()));
  std::vector<SharedGroup> groups;
  for (const Members& members : candidates) {
    // Each rank once as a sender and once as a receiver where it can be, so that their own ports are not what
    // is slow.
    Members flows;
    std::set<int> senders;
    std::set<int> receivers;
    const int ranks = static_cast<int>(cluster.size());
    for (int shift = ranks / 2, tried = 0; tried < ranks; ++tried, shift = (shift + 1) % ranks) {
      for (const std::size_t l : members) {
        const LinkFigures& link = links[l];
        if ((link.from + shift) % ranks != link.to || senders.contains(link.from) ||
            receivers.contains(link.to))
          continue;
        senders.insert(link.from);
        receivers.insert(link.to);
        flows.push_back(l);
      }
    }
    if (flows.size() < 3) continue;
    std::vector<SharedGroup> all = known;
    all.insert(all.end(), groups.begin(), groups.end());
    const double rate = meter.rate_GBps(flows);
    if (rate * options.slower < explained_GBps(links, all, flows)) {
      groups.push_back({name_of(links, members), members, rate});
    }
  }
  return groups;
}

}  // namespace rondo::profile
