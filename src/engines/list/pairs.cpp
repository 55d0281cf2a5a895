#include "pairs.hpp"

#include <algorithm>
#include <map>
#include <ranges>

namespace rondo {
namespace {

constexpr std::uint64_t kChoicesOfDearest = 4;
constexpr std::uint64_t kChoices = 2;

double message_us(const Hop& hop) {
  return std::ranges::max(hop.links, {}, &HopLink::message_us).message_us;
}

}  // namespace

Pairs make_pairs(const HopTable& hops, std::uint64_t seed) {
  std::map<double, std::size_t> least_of_cost;
  for (const Hop& hop : hops.hops()) least_of_cost.emplace(message_us(hop), 1);
  const double dearest_us = least_of_cost.empty() ? 0 : least_of_cost.rbegin()->first;
  for (auto& [cost_us, least] : least_of_cost | std::views::reverse) {
    const std::uint64_t choices = cost_us == dearest_us ? kChoicesOfDearest : kChoices;
    least = std::size_t{1} << seed % choices;
    seed /= choices;
  }

  Pairs pairs;
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
