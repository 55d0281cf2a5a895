#include "queue_scheduler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "crowded_hops.hpp"
#include "holder_distances.hpp"
#include "hop_queue.hpp"
#include "orbit_timetable.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

constexpr std::size_t kArrivalsAhead = 4;  ///< whose queues are fetched before they arrive

/// Rounds down to 4 steps an octave: queues need not be put in order again for every new holder.
std::uint64_t coarse(std::uint64_t holders) {
  const int low_bits = std::max(0, static_cast<int>(std::bit_width(holders)) - 3);
  return holders >> low_bits << low_bits;
}

/// A chunk is numbered as the representative of an orbit sees it: chunk (o * chunks + k) * order + e, for
/// short (q, e), is the k-th chunk of element e of orbit o. Element d of the orbit does with chunk
/// (q, product(d, e)) what the representative does with (q, e), at the same time.
class QueueScheduler {
 public:
  QueueScheduler(const Topology& topology, const FreeGroup& group, const OrbitHops& hops,
                 const Demand& demand, const ListRules& rules);
  std::optional<std::vector<Move>> run(const Deadline& deadline);

 private:
  struct Arrival {
    int orbit;
    std::uint32_t chunk;
  };
  /// What happens at one instant. In regular topologies there are few of them.
  struct Instant {
    std::vector<Arrival> arrivals = {};
    std::vector<int> idle_links = {};  ///< orbits
  };

  std::size_t order() const { return group_.order(); }
  /// The chunk (q, e) of a hop's sender as the receiver sees it.
  std::uint32_t seen_by_receiver(std::uint32_t chunk, const OrbitHop& hop) const {
    const auto e = chunk % static_cast<std::uint32_t>(order());
    return chunk - e + group_.products_of(hop.back)[e];
  }
  /// Whether a GPU of the orbit holds the chunk or has been promised it.
  bool has(std::size_t orbit, std::uint32_t chunk) const {
    return (has_[orbit * words_ + chunk / 64] >> (chunk % 64) & 1) != 0;
  }
  HopQueue& queue(int h) { return queues_[static_cast<std::size_t>(h)]; }
  HopQueue& fallbacks(int h) { return fallbacks_[static_cast<std::size_t>(h)]; }
  std::uint64_t key(std::size_t receiver, std::uint32_t chunk) const {
    return rank_[chunk / order()] | chance(chunk, receiver, rules_.seed);
  }
  void note_crowded_hops(const Topology& topology);
  void arrive(int orbit, std::uint32_t chunk);
  void promise(int orbit, std::uint32_t chunk);
  void apply_events_until(double t_us);
  bool may_fall_back(int h) const;
  bool leaves_to_others(int h) const;
  const HopQueue::Entry* first(HopQueue& queue, int h, bool sort_out_fallbacks);
  bool is_better(const Choice& a, const Choice& b) const;
  bool serve(std::size_t orbit, double t_us);
  /// The queues of a GPU that is served soon: together they are larger than the cache.
  void fetch_ahead(std::size_t orbit) {
    for (const int h : hops_.into(static_cast<int>(orbit))) queue(h).fetch_ahead();
  }
  void start(const Move& move);
  void serve_receivers(double t_us);

  const FreeGroup& group_;
  const OrbitHops& hops_;
  const ListRules& rules_;
  std::size_t num_orbits_;
  std::size_t num_chunks_;
  double chunk_bytes_;
  Random random_;
  double now_us_ = 0;
  bool rules_are_off_ = false;  ///< no transfer keeps the rules: any one that helps may start
  std::size_t missing_ = 0;
  OrbitTimetable timetable_;
  HolderDistances distances_;
  std::vector<HopQueue> queues_;      ///< per hop
  std::vector<HopQueue> fallbacks_;   ///< per hop: chunks whose receiver had better wait for a nearer holder
  std::vector<std::size_t> lacking_;  ///< per GPU orbit: chunks not promised
  std::vector<double> in_GBps_;       ///< per GPU orbit
  std::vector<char> crowded_;         ///< per hop: over trunks that are narrow for all that is lacking
  std::size_t words_;                 ///< of 64 chunks
  /// Per GPU orbit: a bit a chunk; what is looked up most stays in the cache.
  std::vector<std::uint64_t> has_;
  std::vector<std::uint64_t> rank_;     ///< per q: the key without chance
  std::vector<std::uint64_t> holders_;  ///< per q, in orbits
  std::vector<char> waiting_;           ///< per GPU orbit: to be served at this event
  std::map<double, Instant> events_;    ///< by time
  std::vector<OrbitTimetable::Wake> wakes_;
  std::vector<Move> moves_;
};

QueueScheduler::QueueScheduler(const Topology& topology, const FreeGroup& group, const OrbitHops& hops,
                               const Demand& demand, const ListRules& rules)
    : group_(group),
      hops_(hops),
      rules_(rules),
      num_orbits_(group.num_gpu_orbits()),
      num_chunks_(demand.num_chunks()),
      chunk_bytes_(*demand.uniform_chunk_bytes()),
      random_(rules.seed),
      timetable_(topology, group, hops, chunk_bytes_, rules.concurrency),
      distances_(group, hops, kNearOfChunk * chunk_bytes_, num_chunks_, rules.chunks == ChunkOrder::furthest),
      queues_(hops.hops().size()),
      fallbacks_(hops.hops().size()),
      lacking_(num_orbits_, num_chunks_),
      words_((num_chunks_ + 63) / 64),
      has_(num_orbits_ * words_, 0),
      rank_(num_chunks_ / order(), 0),
      holders_(num_chunks_ / order(), 0),
      waiting_(num_orbits_, 1) {
  const std::size_t chunks = num_chunks_ / order() / num_orbits_;
  for (std::size_t o = 0; o < num_orbits_; ++o) {
    const int orbit = static_cast<int>(o);
    in_GBps_.push_back(goodput_into_GBps(topology, group.gpu(orbit, 0), chunk_bytes_));
    for (std::size_t k = 0; k < chunks; ++k) {
      const auto own = static_cast<std::uint32_t>((o * chunks + k) * order());
      promise(orbit, own);
      events_[0].arrivals.push_back({orbit, own});
    }
  }
  for (const std::size_t lacking : lacking_) missing_ += lacking;
  note_crowded_hops(topology);
}

void QueueScheduler::note_crowded_hops(const Topology& topology) {
  std::vector<HopUse> uses;
  for (const OrbitHop& hop : hops_.hops()) uses.push_back({&hop.hop, static_cast<std::size_t>(hop.to)});
  std::vector<int> orbit_of;
  for (std::size_t l = 0; l < topology.num_links(); ++l) orbit_of.push_back(group_.place(LinkId{l}).orbit);
  std::vector<double> lacking_bytes;  // per GPU orbit
  for (const std::size_t lacking : lacking_)
    lacking_bytes.push_back(chunk_bytes_ * static_cast<double>(lacking));
  crowded_ = crowded_hops(topology, uses, orbit_of, lacking_bytes, chunk_bytes_);
}

/// The sender of a hop has a chunk from now on.
void QueueScheduler::arrive(int orbit, std::uint32_t chunk) {
  for (const int h : hops_.out_of(orbit)) {
    const OrbitHop& hop = hops_.hop(h);
    const auto to = static_cast<std::size_t>(hop.to);
    const std::uint32_t there = seen_by_receiver(chunk, hop);
    if (has(to, there)) continue;
    std::uint64_t key_there = key(to, there);
    if (rules_.chunks == ChunkOrder::oldest) {
      key_there |= std::bit_cast<std::uint64_t>(now_us_) & ~kChance;
    } else if (rules_.chunks == ChunkOrder::nearest) {
      const std::size_t q = there / order();
      const std::size_t origin = q / (num_chunks_ / order() / num_orbits_);
      const int receiver = group_.inverse(static_cast<int>(there % order()));  // as the origin sees it
      const float far = distances_.relay_us(origin, static_cast<std::size_t>(receiver), to);
      key_there |= static_cast<std::uint64_t>(far / distances_.diameter_us() * 0xffffff) << 16;
    }
    queue(h).push({key_there, there});
    waiting_[to] = 1;
  }
}

void QueueScheduler::promise(int orbit, std::uint32_t chunk) {
  --lacking_[static_cast<std::size_t>(orbit)];
  has_[static_cast<std::size_t>(orbit) * words_ + chunk / 64] |= std::uint64_t{1} << (chunk % 64);
  distances_.add_holder(orbit, chunk);
  const std::size_t q = chunk / order();
  ++holders_[q];
  if (rules_.chunks == ChunkOrder::rarest) rank_[q] = make_key(coarse(holders_[q]), 0);
  if (rules_.chunks == ChunkOrder::furthest)
    rank_[q] = make_key(closeness(distances_.farthest_us(q), distances_.diameter_us()), holders_[q]);
}

void QueueScheduler::apply_events_until(double t_us) {
  while (!events_.empty() && events_.begin()->first <= t_us) {
    const Instant instant = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    const auto& arrivals = instant.arrivals;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      if (i + kArrivalsAhead < arrivals.size()) {
        for (const int h : hops_.out_of(arrivals[i + kArrivalsAhead].orbit)) queue(h).fetch_end();
      }
      arrive(arrivals[i].orbit, arrivals[i].chunk);
    }
    for (const int link : instant.idle_links) {
      for (const int orbit : timetable_.receivers(link)) waiting_[static_cast<std::size_t>(orbit)] = 1;
    }
  }
}

bool QueueScheduler::may_fall_back(int h) const {
  const OrbitHop& hop = hops_.hop(h);
  const auto to = static_cast<std::size_t>(hop.to);
  if (rules_are_off_) return true;
  return !crowded_[static_cast<std::size_t>(h)] &&
         others_are_busy_longer(hop.hop, chunk_bytes_, in_GBps_[to],
                                chunk_bytes_ * static_cast<double>(lacking_[to]));
}

/// A slow hop, such as over a damaged link into a switch, occupies the receiver's link for longer than others
/// would. It is left to the other receivers behind its first link where this one lacks more than one chunk
/// above their mean; otherwise links that fall idle together would meet again and again, and one receiver
/// would be served by the slow hop all the time.
bool QueueScheduler::leaves_to_others(int h) const {
  const int link = timetable_.slow_link(h);
  if (link < 0 || rules_are_off_) return false;
  const auto receivers = timetable_.receivers(link);
  std::size_t sum = 0;
  for (const int orbit : receivers) sum += lacking_[static_cast<std::size_t>(orbit)];
  return (lacking_[static_cast<std::size_t>(hops_.hop(h).to)] - 1) * receivers.size() > sum;
}

/// The first entry of `queue`, or nothing. Removes chunks that have been promised meanwhile, and moves those
/// that had better wait for a nearer holder to the fallbacks.
const HopQueue::Entry* QueueScheduler::first(HopQueue& queue, int h, bool sort_out_fallbacks) {
  const bool keys_grow = rules_.chunks == ChunkOrder::rarest || rules_.chunks == ChunkOrder::furthest;
  const double wait_below_us = kNearer * hops_.hop(h).hop.duration_us(kNearOfChunk * chunk_bytes_);
  const int receiver = hops_.hop(h).to;
  const auto to = static_cast<std::size_t>(receiver);
  // Where no other GPU is near enough, the chunk's distance, far away in memory, need not be looked up.
  const bool may_wait = sort_out_fallbacks && distances_.nearest_other_us(receiver) < wait_below_us;
  while (!queue.empty()) {
    const HopQueue::Entry entry = queue.first();
    if (has(to, entry.chunk)) {
      queue.pop();
    } else if (may_wait && distances_.near_us(receiver, entry.chunk) < wait_below_us) {
      queue.pop();
      fallbacks(h).push(entry);
    } else if (keys_grow && (entry.key & ~kChance) != rank_[entry.chunk / order()]) {
      queue.replace_first({key(to, entry.chunk), entry.chunk});
    } else {
      return &queue.first();
    }
  }
  return nullptr;
}

bool QueueScheduler::is_better(const Choice& a, const Choice& b) const {
  if (rules_.senders == SenderOrder::fitting && a.fallback == b.fallback) {
    const double excess_a = timetable_.excess(a.hop);
    const double excess_b = timetable_.excess(b.hop);
    if (std::abs(excess_a - excess_b) > OrbitTimetable::kSlow - 1) return excess_a < excess_b;
  }
  return goes_first(a, b, rules_.senders);
}

bool QueueScheduler::serve(std::size_t orbit, double t_us) {
  if (lacking_[orbit] == 0) return false;
  Choice best;
  for (const int h : hops_.into(static_cast<int>(orbit))) {
    if ((queue(h).empty() && fallbacks(h).empty()) || !timetable_.is_idle(h, t_us) || leaves_to_others(h))
      continue;
    bool fallback = false;
    const HopQueue::Entry* entry = first(queue(h), h, true);
    if (!entry && (best.hop < 0 || best.fallback) && may_fall_back(h)) {
      fallback = true;
      entry = first(fallbacks(h), h, false);
    }
    if (!entry) continue;
    const Choice choice{h, entry->chunk, fallback, entry->key, (fallback ? fallbacks(h) : queue(h)).size()};
    if (best.hop < 0 || is_better(choice, best)) best = choice;
  }
  if (best.hop < 0) return false;

  start({ChunkId{std::size_t{best.chunk}}, best.hop, t_us});
  return true;
}

void QueueScheduler::start(const Move& move) {
  const int to = hops_.hop(move.hop).to;
  const auto chunk = static_cast<std::uint32_t>(move.chunk.value);
  wakes_.clear();
  timetable_.occupy(move.hop, move.start_us, wakes_);
  for (const auto& [link, t_us] : wakes_) events_[t_us].idle_links.push_back(link);
  events_[move.start_us + timetable_.duration_us(move.hop)].arrivals.push_back({to, chunk});
  moves_.push_back(move);
  --missing_;
  promise(to, chunk);
}

void QueueScheduler::serve_receivers(double t_us) {
  serve_in_turn(
      waiting_, lacking_, random_, [&](std::size_t orbit) { return serve(orbit, t_us); },
      [&](std::size_t orbit) { fetch_ahead(orbit); });
}

std::optional<std::vector<Move>> QueueScheduler::run(const Deadline& deadline) {
  while (missing_ > 0) {
    if (deadline.is_over()) return std::nullopt;
    rules_are_off_ = events_.empty();
    if (rules_are_off_) {
      const std::size_t before = missing_;
      std::ranges::fill(waiting_, 1);
      serve_receivers(now_us_);
      if (missing_ == before) throw Error(ExitCode::internal, "list scheduling: no GPU can go on");
      continue;
    }
    now_us_ = events_.begin()->first;
    apply_events_until(now_us_ + time_slack_us(now_us_));
    serve_receivers(now_us_);
  }
  return std::move(moves_);
}

}  // namespace

std::optional<std::vector<Move>> representative_moves(const Topology& topology, const FreeGroup& group,
                                                      const OrbitHops& hops, const Demand& demand,
                                                      const ListRules& rules, const Deadline& deadline) {
  return QueueScheduler(topology, group, hops, demand, rules).run(deadline);
}

}  // namespace rondo
