#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <vector>

#include "rondo/core/replay.hpp"
#include "rondo/core/replay_parts.hpp"

namespace rondo {

/// The replay as `ranks` do it, each with its part of the chunks, a chunk and a group of links at a time.
inline ReplayResult replay_by_parts(const Topology& topology, const Demand& demand,
                                    std::span<const Send> sends, int ranks) {
  std::vector<std::vector<Send>> held(static_cast<std::size_t>(ranks));
  for (const Send& send : sends)
    held[static_cast<std::size_t>(rank_of_chunk(send.chunk, demand.num_chunks(), ranks))].push_back(send);
  std::vector<ReplayOfChunks> parts;
  parts.reserve(held.size());
  for (int r = 0; r < ranks; ++r) {
    parts.emplace_back(topology, demand, chunks_of_rank(demand.num_chunks(), r, ranks),
                       held[static_cast<std::size_t>(r)], 1);
  }
  std::optional<Violation> first;
  std::vector<double> per_link(topology.num_links(), 0.0);
  ReplayResult result{std::nullopt, 0, std::vector<double>(demand.contributions().size(), 0.0)};
  for (const ReplayOfChunks& part : parts) {
    keep_first(first, part.violation());
    result.finish_us = std::max(result.finish_us, part.finish_us());
    const std::vector<double> more = part.sends_per_link();
    for (std::size_t l = 0; l < more.size(); ++l) per_link[l] += more[l];
    for (std::size_t i = 0; i < result.contribution_finish_us.size(); ++i) {
      result.contribution_finish_us[i] =
          std::max(result.contribution_finish_us[i], part.contribution_finish_us()[i]);
    }
  }
  for (const std::vector<LinkId>& links : link_groups(topology, per_link, 1)) {
    std::vector<LinkUse> uses;
    for (const ReplayOfChunks& part : parts) {
      const std::vector<LinkUse> more = part.uses_of(links);
      uses.insert(uses.end(), more.begin(), more.end());
    }
    keep_first(first, replay_links(topology, demand, links, std::move(uses)));
  }
  if (first) return {std::move(first->sentence)};
  return result;
}

/// The verdict of the replay, which is the same in parts where the rules allow those.
inline ReplayResult replay_both_ways(const Topology& topology, const Demand& demand,
                                     std::span<const Send> sends) {
  ReplayResult whole = replay(topology, demand, sends);
  if (!replays_in_parts(topology, demand, sends)) return whole;
  for (const int ranks : {1, 3}) {
    const ReplayResult parts = replay_by_parts(topology, demand, sends, ranks);
    EXPECT_EQ(parts.violation, whole.violation) << ranks << " ranks";
    if (!whole.valid()) continue;
    EXPECT_EQ(parts.finish_us, whole.finish_us) << ranks << " ranks";
    EXPECT_EQ(parts.contribution_finish_us, whole.contribution_finish_us) << ranks << " ranks";
  }
  return whole;
}

}  // namespace rondo
