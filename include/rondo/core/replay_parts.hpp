#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rondo/core/chunk_range.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// The replay in parts, so that nobody needs all sends at once. The rules of FORMATS.md 3 speak of one chunk
/// at a time (when it is where) or of one link or group at a time (what is used of it). So whoever has all
/// sends of some chunks checks the first, gives to whoever looks at a link what its chunks use of it, and the
/// verdict is the earliest violation that anybody found: the same as of replay(), to the letter.
namespace rondo {

/// Whether that is all that the rules say here. It is not where sends have transfer numbers, bandwidth
/// changes over time, switches store, or GPUs have little memory for what they pass on.
bool replays_in_parts(const Topology& topology, const Demand& demand);
bool replays_in_parts(const Topology& topology, const Demand& demand, std::span<const Send> sends);

/// What breaks a rule; violations are ordered by time, then by all the rest.
struct Violation {
  double time_us = 0;
  int rank = 0;  ///< among those of one time
  LinkId link = {};
  ChunkId chunk = {};
  std::string sentence = {};

  friend bool operator<(const Violation& a, const Violation& b) {
    return std::tie(a.time_us, a.rank, a.link, a.chunk) < std::tie(b.time_us, b.rank, b.link, b.chunk);
  }
};

/// Keeps the earlier one in `first`.
void keep_first(std::optional<Violation>& first, std::optional<Violation> other);

/// A send and what it takes of its link.
struct LinkUse {
  Send send;
  double rate_GBps = 0;
  double duration_us = 0;
};

/// The rules of each chunk by itself, for all sends of some chunks. Besides the sends, to which it refers, it
/// takes eight bytes a send.
class ReplayOfChunks {
 public:
  /// Sends in any order. About `at_once` of them are looked at together.
  ReplayOfChunks(const Topology& topology, const Demand& demand, ChunkRange chunks,
                 std::span<const Send> sends, std::size_t at_once = kAtOnce);

  /// The first violation of these chunks; the rest is meaningful where there is none.
  const std::optional<Violation>& violation() const { return violation_; }
  /// When the last destination of these chunks is served (rule 7).
  double finish_us() const { return finish_us_; }
  /// The same for each contribution; 0 for those of other chunks.
  const std::vector<double>& contribution_finish_us() const { return contribution_finish_us_; }

  std::vector<double> sends_per_link() const;
  /// Of the sends on these links, by chunk.
  std::vector<LinkUse> uses_of(std::span<const LinkId> links) const;

  static constexpr std::size_t kAtOnce = std::size_t{1} << 16;

 private:
  struct Kind {
    double rate_GBps;
    double duration_us;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  std::uint32_t number_of(const Kind& kind);
  void group_by_link();

  const Topology& topology_;
  std::span<const Send> sends_;
  std::optional<Violation> violation_;
  double finish_us_ = 0;
  std::vector<double> contribution_finish_us_;
  std::vector<std::uint32_t> kind_of_;  ///< per send: position in kinds_
  std::vector<Kind> kinds_;             ///< what sends take of their links, each once
  std::map<Kind, std::uint32_t> number_of_kind_;
  std::vector<std::uint32_t> by_link_;      ///< positions of sends
  std::vector<std::size_t> first_of_link_;  ///< in by_link_, and the end
};

/// Links in groups of about `least` uses, which replay_links() takes one after another. Links that share
/// bandwidth are not parted. `sends_per_link`: of all chunks together.
std::vector<std::vector<LinkId>> link_groups(const Topology& topology,
                                             const std::vector<double>& sends_per_link,
                                             double least = static_cast<double>(ReplayOfChunks::kAtOnce));

/// The rules of each link and of each group that shares bandwidth, given all uses of `links`, in any order.
std::optional<Violation> replay_links(const Topology& topology, const Demand& demand,
                                      std::span<const LinkId> links, std::vector<LinkUse> uses);

}  // namespace rondo
