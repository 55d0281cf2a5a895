#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/rate_account.hpp"
#include "rondo/core/topology.hpp"

/// The rules that the list scheduler (any demand, scans the chunks) and the queue scheduler (AllGather, a
/// queue of chunks a hop) have in common. At every event the receivers are served in turn; a receiver takes
/// the best chunk over the best of the idle hops that lead to it. A chunk goes over a hop only if no current
/// or promised holder is nearer to the receiver than the hop takes; otherwise the hop is a fallback, taken
/// where the receiver's other links are busy for longer anyway.
namespace rondo {

/// Which chunk goes first among those that may be sent.
enum class ChunkOrder {
  rarest,    ///< the one with the fewest current and promised holders
  furthest,  ///< the one whose farthest waiting GPU is farthest from a holder
  nearest,   ///< queues: the one whose origin is nearest to the receiver
  oldest,    ///< queues: the one that came first to the sender
};

/// Which of the idle hops into a receiver is used first.
enum class SenderOrder {
  best_chunk,  ///< the one whose best chunk goes first
  fullest,     ///< the one that could carry most chunks: hops behind one link drain evenly
  scarcest,    ///< queues: the one that could carry fewest: others have more to choose from
  fitting,     ///< queues: the one that occupies its links least beyond what they need: slow with slow ones
};

struct ListRules {
  ChunkOrder chunks = ChunkOrder::rarest;
  SenderOrder senders = SenderOrder::best_chunk;
  /// `rarest` of the list scheduler: of chunks with equally many holders the furthest goes first, instead of
  /// chance.
  bool distance_breaks_ties = false;
  /// The list scheduler takes a hop that is slower than the nearest holder's also where a promised chunk
  /// would come later than over it. Wins time where latency counts, and costs bandwidth.
  bool soonest = false;
  /// Rates are divided so that links faster than the hops over them are filled (rate_divisors).
  bool fitting_rates = false;
  /// Of what a sender has for a receiver, much goes together where messages cost, instead of one chunk after
  /// another.
  bool joined = false;
  /// Of `joined`: a receiver and its sender exchange what they have, as in recursive doubling, the pair first
  /// that learns most; hops wait until they can carry several chunks (Pairs).
  bool pairwise = false;
  std::uint64_t seed = 0;
  int concurrency = kAnyConcurrency;  ///< transfers at a time on a link of a GPU
};

/// The rules of a policy of list_policies() or queue_policies(). Throws Error(usage) for an unknown one.
ListRules list_rules(const std::string& policy, std::uint64_t seed);
ListRules queue_rules(const std::string& policy, std::uint64_t seed);
/// Those of list_policies() that divide no rates and join no chunks: what models know.
std::vector<std::string> list_policies_of_models();

/// A holder is nearer than a hop takes below this share of it.
inline constexpr double kNearer = 1 - 1e-5;
/// Of a chunk, what distances from holders are measured by, latency mostly. By whole large chunks relays over
/// fast links would all be nearer than a slow link, which would stay idle until the end.
inline constexpr double kNearOfChunk = 1.0 / 64;

/// Keys order chunks, the smallest goes first: 24 bits by the rule, 24 bits that break its ties, 16 bits of
/// chance.
inline constexpr std::uint64_t kChance = 0xffff;
constexpr std::uint64_t make_key(std::uint64_t rule, std::uint64_t tie) {
  return rule << 40 | tie << 16;
}
inline std::uint64_t chance(std::uint64_t chunk, std::uint64_t receiver, std::uint64_t seed) {
  return mix_bits(chunk * 0x9e3779b97f4a7c15ULL + receiver * 0x2545F491ULL + seed) & kChance;
}
/// 24 bits, the smaller the farther, of a distance up to `diameter`.
template <class Real>
std::uint64_t closeness(Real distance, Real diameter) {
  return static_cast<std::uint64_t>(Real{0xffffff} * (1 - std::min(Real{1}, distance / diameter)));
}

/// What a hop could do for a receiver.
struct Choice {
  int hop = -1;
  std::uint32_t chunk = 0;
  bool fallback = false;
  std::uint64_t key = 0;
  std::size_t alternatives = 0;  ///< chunks that the hop could carry
};

/// Whether `a` is used before `b`; of `fitting` only what breaks its ties.
bool goes_first(const Choice& a, const Choice& b, SenderOrder senders);

/// What all links into the GPU carry together when every message has `bytes`.
double goodput_into_GBps(const Topology& topology, GpuId gpu, double bytes);

/// Whether the receiver's links other than the last one of `hop`, which together carry `in_GBps`, take at
/// least as long for all it lacks as the hop for a chunk of `bytes`.
bool others_are_busy_longer(const Hop& hop, double bytes, double in_GBps, double lacking_bytes);

/// Serves the waiting receivers in turn, the one with the most bytes missing first, until none can be served.
/// `serve` starts a transfer to a receiver and tells whether there was one; `prepare` is called for a
/// receiver some turns before.
template <class Lacking>
void serve_in_turn(std::vector<char>& waiting, const std::vector<Lacking>& lacking, Random& random,
                   auto serve, auto prepare) {
  constexpr std::size_t kAhead = 4;
  std::vector<std::pair<Lacking, std::size_t>> order;
  for (bool progress = true; progress;) {
    progress = false;
    order.clear();
    for (std::size_t g = 0; g < waiting.size(); ++g) {
      if (waiting[g]) order.emplace_back(lacking[g], g);
    }
    random.shuffle(std::span(order));
    std::ranges::stable_sort(order, std::ranges::greater{}, [](const auto& entry) { return entry.first; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + kAhead < order.size()) prepare(order[i + kAhead].second);
      const std::size_t receiver = order[i].second;
      if (serve(receiver)) {
        progress = true;
      } else {
        waiting[receiver] = 0;
      }
    }
  }
}

}  // namespace rondo
