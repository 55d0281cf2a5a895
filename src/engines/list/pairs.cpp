#include "pairs.hpp"

#include <algorithm>
#include <bit>
#include <boost/pending/disjoint_sets.hpp>
#include <map>

namespace rondo {
namespace {

constexpr std::uint64_t kFewestChoicesOfDearest = 4;
constexpr std::uint64_t kChoices = 2;

double message_us(const Hop& hop) {
  return std::ranges::max(hop.links, {}, &HopLink::message_us).message_us;
}

/// Of the GPUs that hops with cheaper messages join, the most.
std::size_t most_joined_below(double cost_us, const HopTable& hops) {
  boost::disjoint_sets_with_storage<> sets(hops.num_gpus());
  for (const Hop& hop : hops.hops()) {
    if (message_us(hop) < cost_us) sets.union_set(hop.src.index(), hop.dst.index());
  }
  std::vector<std::size_t> joined(hops.num_gpus(), 0);
  std::size_t most = 1;
  for (std::size_t g = 0; g < joined.size(); ++g) most = std::max(most, ++joined[sets.find_set(g)]);
  return most;
}

}  // namespace

Pairs make_pairs(const HopTable& hops, std::uint64_t seed) {
  Pairs pairs;
  pairs.by_number = seed % 2 == 0;
  seed /= 2;
  std::map<double, std::size_t> least_of_cost;
  for (const Hop& hop : hops.hops()) least_of_cost.emplace(message_us(hop), 1);
  const double dearest_us = least_of_cost.empty() ? 0 : least_of_cost.rbegin()->first;
  const auto choices_of_dearest =
      std::max<std::uint64_t>(kFewestChoicesOfDearest, std::bit_width(most_joined_below(dearest_us, hops)));
  for (auto cost = least_of_cost.rbegin(); cost != least_of_cost.rend(); ++cost) {
    const std::uint64_t choices = cost->first == dearest_us ? choices_of_dearest : kChoices;
    cost->second = std::size_t{1} << seed % choices;
    seed /= choices;
  }

  pairs.all_together = seed % 2 == 0;
  for (const Hop& hop : hops.hops()) {
    const auto& into_sender = hops.into(hop.src);
    const auto back = std::ranges::find(into_sender, hop.dst, [&](int h) { return hops.hop(h).src; });
    pairs.back.push_back(back == into_sender.end() ? -1 : *back);
    pairs.least_chunks.push_back(least_of_cost.at(message_us(hop)));
  }
  return pairs;
}

}  // namespace rondo
