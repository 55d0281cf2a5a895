#include "rondo/core/replay_parts.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "replay_internal.hpp"
#include "rondo/core/relay_memory.hpp"

namespace rondo {

bool replays_in_parts(const Topology& topology, const Demand& demand) {
  return !topology.has_bandwidth_steps() && std::ranges::none_of(topology.nodes(), &Node::stores) &&
         !has_limited_relays(topology, demand);
}

bool replays_in_parts(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  return replays_in_parts(topology, demand) &&
         std::ranges::all_of(sends, [](const Send& send) { return send.transfer == kNoTransfer; });
}

void keep_first(std::optional<Violation>& first, std::optional<Violation> other) {
  if (other && (!first || *other < *first)) first = std::move(other);
}

ReplayOfChunks::ReplayOfChunks(const Topology& topology, const Demand& demand, ChunkRange chunks,
                               std::span<const Send> sends, std::size_t at_once)
    : topology_(topology), sends_(sends), contribution_finish_us_(demand.contributions().size(), 0.0) {
  using namespace replay_internal;
  for (const Send& send : sends) {
    std::optional<std::string> why = malformed(topology, demand, send);
    if (!why) {
      assert(chunks.contains(send.chunk));
      continue;
    }
    violation_ = Violation{-kNever, 0, send.link, send.chunk, *std::move(why)};  // before all others
    return;
  }
  kind_of_.resize(sends.size());
  std::vector<std::uint32_t> positions = positions_by_chunk(chunks, sends);
  FirstViolation first;
  Causality causality;
  causality.contribution_finish_us = std::move(contribution_finish_us_);
  std::size_t begin = 0;  // in positions
  for (ChunkRange part{chunks.first, chunks.first}; part.end < chunks.end; part.first = part.end) {
    std::size_t end = begin;
    do {
      while (end < positions.size() && sends[positions[end]].chunk.index() == part.end) ++end;
      ++part.end;
    } while (part.end < chunks.end && end - begin < at_once);
    const std::span<std::uint32_t> of_part = std::span(positions).subspan(begin, end - begin);
    const Execution execution = execution_of(topology, demand, part, sends, of_part);
    const JoinedSends transfers = execute_chunks(execution, first, causality);
    for (std::size_t s = 0; s < of_part.size(); ++s)
      kind_of_[of_part[s]] = number_of({transfers.rate_GBps[s], transfers.duration_us[s]});
    begin = end;
  }
  violation_ = first.found();
  finish_us_ = causality.finish_us;
  contribution_finish_us_ = std::move(causality.contribution_finish_us);
  by_link_ = std::move(positions);
  group_by_link();
}

std::uint32_t ReplayOfChunks::number_of(const Kind& kind) {
  const auto [at, is_new] = number_of_kind_.try_emplace(kind, static_cast<std::uint32_t>(kinds_.size()));
  if (is_new) kinds_.push_back(kind);
  return at->second;
}

/// Takes the memory of the order by chunk, which is done with.
void ReplayOfChunks::group_by_link() {
  first_of_link_.assign(topology_.num_links() + 1, 0);
  for (const Send& send : sends_) ++first_of_link_[send.link.index() + 1];
  std::partial_sum(first_of_link_.begin(), first_of_link_.end(), first_of_link_.begin());
  std::vector<std::size_t> next(first_of_link_.begin(), first_of_link_.end() - 1);
  for (std::size_t s = 0; s < sends_.size(); ++s)
    by_link_[next[sends_[s].link.index()]++] = static_cast<std::uint32_t>(s);
}

std::vector<double> ReplayOfChunks::sends_per_link() const {
  std::vector<double> count(topology_.num_links(), 0.0);
  if (first_of_link_.empty()) return count;
  for (std::size_t l = 0; l < count.size(); ++l)
    count[l] = static_cast<double>(first_of_link_[l + 1] - first_of_link_[l]);
  return count;
}

std::vector<LinkUse> ReplayOfChunks::uses_of(std::span<const LinkId> links) const {
  std::vector<LinkUse> uses;
  if (first_of_link_.empty()) return uses;
  std::size_t count = 0;
  for (const LinkId l : links) count += first_of_link_[l.index() + 1] - first_of_link_[l.index()];
  uses.reserve(count);
  for (const LinkId l : links) {
    for (std::size_t i = first_of_link_[l.index()]; i < first_of_link_[l.index() + 1]; ++i) {
      const Kind& kind = kinds_[kind_of_[by_link_[i]]];
      uses.push_back({sends_[by_link_[i]], kind.rate_GBps, kind.duration_us});
    }
  }
  return uses;
}

std::vector<std::vector<LinkId>> link_groups(const Topology& topology,
                                             const std::vector<double>& sends_per_link, double least) {
  // Of links that are joined by sharing bandwidth the least leads.
  std::vector<std::size_t> leader(topology.num_links());
  std::iota(leader.begin(), leader.end(), std::size_t{0});
  const auto find = [&](std::size_t l) {
    while (leader[l] != l) l = leader[l] = leader[leader[l]];
    return l;
  };
  for (const SharedBandwidth& shared : topology.shared_bandwidth()) {
    for (const LinkId l : shared.links) {
      const auto [a, b] = std::minmax({find(l.index()), find(shared.links.front().index())});
      leader[b] = a;
    }
  }
  std::vector<LinkId> links = replay_internal::all_links(topology);
  std::ranges::stable_sort(links, {}, [&](LinkId l) { return find(l.index()); });
  std::vector<std::vector<LinkId>> groups;
  double uses = least;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const bool is_joined = i > 0 && find(links[i].index()) == find(links[i - 1].index());
    if (uses >= least && !is_joined) {
      groups.emplace_back();
      uses = 0;
    }
    groups.back().push_back(links[i]);
    uses += sends_per_link[links[i].index()];
  }
  return groups;
}

std::optional<Violation> replay_links(const Topology& topology, const Demand& demand,
                                      std::span<const LinkId> links, std::vector<LinkUse> uses) {
  using namespace replay_internal;
  std::ranges::sort(uses, {}, [](const LinkUse& use) {
    const Send& s = use.send;
    return std::tuple(s.chunk, s.start_us, s.link, s.end_us, s.arrival_us, s.op);
  });
  Execution execution{topology, demand, {}, {}, {}};
  JoinedSends transfers;
  for (const LinkUse& use : uses) {
    execution.sends.push_back(use.send);
    transfers.rate_GBps.push_back(use.rate_GBps);
    transfers.duration_us.push_back(use.duration_us);
  }
  FirstViolation first;
  check_bandwidth(execution, transfers, links, first);
  return first.found();
}

}  // namespace rondo

namespace rondo::replay_internal {

std::vector<std::uint32_t> positions_by_chunk(ChunkRange chunks, std::span<const Send> sends) {
  std::vector<std::size_t> next(chunks.size() + 1, 0);
  for (const Send& send : sends) ++next[send.chunk.index() - chunks.first + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> positions(sends.size());
  for (std::size_t s = 0; s < sends.size(); ++s)
    positions[next[sends[s].chunk.index() - chunks.first]++] = static_cast<std::uint32_t>(s);
  return positions;
}

std::vector<LinkId> all_links(const Topology& topology) {
  std::vector<LinkId> links;
  for (std::size_t l = 0; l < topology.num_links(); ++l) links.emplace_back(l);
  return links;
}

ReplayResult replay_part_by_part(const Topology& topology, const Demand& demand,
                                 std::span<const Send> sends) {
  const ReplayOfChunks chunks(topology, demand, {0, demand.num_chunks()}, sends);
  std::optional<Violation> first = chunks.violation();
  for (const std::vector<LinkId>& links : link_groups(topology, chunks.sends_per_link()))
    keep_first(first, replay_links(topology, demand, links, chunks.uses_of(links)));
  if (first) return {std::move(first->sentence)};
  return {std::nullopt, chunks.finish_us(), chunks.contribution_finish_us()};
}

}  // namespace rondo::replay_internal
