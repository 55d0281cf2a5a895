#include "lifted_scheduler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "holder_distances.hpp"
#include "hop_queue.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr std::uint64_t kChance = 0xffff;  ///< the bits of a key that settle ties

constexpr double kSlow = 1.02;  ///< of the time that the fastest takes

constexpr std::size_t kAhead = 4;  ///< GPUs whose queues are fetched before they are served

/// To 4 steps an octave: queues need not be put in order again for every new holder.
std::uint64_t coarse(std::uint64_t holders) {
  const int low_bits = std::max(0, static_cast<int>(std::bit_width(holders)) - 3);
  return holders >> low_bits << low_bits;
}

/// GPUs are seen from element 0 of their orbit. Chunk number (o * chunks + k) * order + e, for short (q, e),
/// is then the k-th one of the GPU e further on in orbit o. What element 0 does with (q, e), element d does
/// with (q, e + d) at the same time.
class LiftedScheduler {
 public:
  LiftedScheduler(const Topology& topology, const Translations& translations, const LiftedHops& hops,
                  const Demand& demand, const LiftedRules& rules);
  std::optional<std::vector<Move>> run(const Deadline& deadline);

 private:
  struct Arrival {
    int orbit;
    std::uint32_t chunk;
  };
  /// What happens at one instant. In regular topologies there are few of them.
  struct Instant {
    std::vector<Arrival> arrivals = {};
    std::vector<int> free_links = {};  ///< orbits
  };
  struct Choice {
    int hop = -1;
    bool fallback = false;
    HopQueue::Entry entry = {};
    std::size_t alternatives = 0;
  };

  std::size_t order() const { return translations_.order(); }
  /// (q, e) as seen by a GPU `shift` further on.
  std::uint32_t seen_from(std::uint32_t chunk, int shift) const {
    const auto n = static_cast<std::uint32_t>(order());
    return chunk - chunk % n +
           static_cast<std::uint32_t>(translations_.minus(static_cast<int>(chunk % n), shift));
  }
  /// Whether a GPU of the orbit holds the chunk or has been promised it.
  bool has(int orbit, std::uint32_t chunk) const {
    return (has_[static_cast<std::size_t>(orbit) * words_ + chunk / 64] >> (chunk % 64) & 1) != 0;
  }
  /// What a hop does to one of its links.
  struct Use {
    int link;  ///< orbit
    double offset_us;
    double occupied_us;
  };
  std::span<const Use> uses(int h) const {
    const auto i = static_cast<std::size_t>(h);
    return std::span(uses_).subspan(first_use_[i], first_use_[i + 1] - first_use_[i]);
  }
  std::uint64_t key(int h, std::uint32_t chunk) const;
  void arrive(int orbit, std::uint32_t chunk);
  void promise(int orbit, std::uint32_t chunk);
  void apply_events_until(double t_us);
  bool idle(int h, double t_us) const;
  bool may_fall_back(int h) const;
  bool leaves_to_others(int h) const;
  const HopQueue::Entry* first(HopQueue& queue, int h, bool sort_out_fallbacks);
  bool goes_first(const Choice& a, const Choice& b) const;
  bool serve(int orbit, double t_us);
  /// The queues of a GPU that is served soon: together they are larger than the cache.
  void fetch_ahead(int orbit) const {
    for (const int h : hops_.into(orbit)) queues_[static_cast<std::size_t>(h)].fetch_ahead();
  }
  void start(const Move& move);
  void serve_receivers(double t_us);

  const Translations& translations_;
  const LiftedHops& hops_;
  const LiftedRules& rules_;
  std::size_t num_orbits_;
  std::size_t num_chunks_;
  double chunk_bytes_;
  Random random_;
  double now_us_ = 0;
  bool any_way_ = false;  ///< nothing moves under the rules: anything that helps may be sent
  std::size_t missing_;
  HolderDistances distances_;
  std::vector<double> duration_us_;   ///< per hop
  std::vector<HopQueue> queues_;      ///< per hop
  std::vector<HopQueue> fallbacks_;   ///< per hop: chunks whose receiver had better wait for a nearer holder
  std::vector<std::size_t> lacking_;  ///< per GPU orbit: chunks not promised
  std::vector<double> in_GBps_;       ///< per GPU orbit
  std::size_t words_;                 ///< of 64 chunks
  /// Per GPU orbit: a bit a chunk; what is looked up most stays in the cache.
  std::vector<std::uint64_t> has_;
  std::vector<Use> uses_;               ///< of all hops
  std::vector<std::size_t> first_use_;  ///< per hop, and the end
  /// Per hop that fills its last link less than others would: its first link, an orbit; of others -1.
  std::vector<int> slow_link_;
  /// Per hop: the most that it occupies one of its links beyond what another hop would, as a part of that.
  std::vector<double> excess_;
  std::vector<std::uint64_t> rank_;           ///< per q: the key without the tie-break
  std::vector<std::uint64_t> holders_;        ///< per q, in orbits
  std::vector<double> free_from_;             ///< per orbit of links
  std::vector<std::vector<double>> offsets_;  ///< per orbit of links: after a hop's start
  std::vector<std::vector<int>> receivers_;   ///< per orbit of links: GPU orbits behind its hops
  std::vector<char> waiting_;                 ///< per GPU orbit: to be served at this event
  std::map<double, Instant> events_;          ///< by time
  std::vector<Move> moves_;
};

LiftedScheduler::LiftedScheduler(const Topology& topology, const Translations& translations,
                                 const LiftedHops& hops, const Demand& demand, const LiftedRules& rules)
    : translations_(translations),
      hops_(hops),
      rules_(rules),
      num_orbits_(translations.num_gpu_orbits()),
      num_chunks_(demand.num_chunks()),
      chunk_bytes_(*demand.uniform_chunk_bytes()),
      random_(rules.seed),
      distances_(translations, hops, chunk_bytes_, num_chunks_, rules.order == LiftedOrder::furthest),
      queues_(hops.hops().size()),
      fallbacks_(hops.hops().size()),
      lacking_(num_orbits_, num_chunks_),
      in_GBps_(num_orbits_, 0.0),
      words_((num_chunks_ + 63) / 64),
      has_(num_orbits_ * words_, 0),
      rank_(num_chunks_ / order(), 0),
      holders_(num_chunks_ / order(), 0),
      free_from_(translations.num_link_orbits(), 0.0),
      offsets_(translations.num_link_orbits()),
      receivers_(translations.num_link_orbits()),
      waiting_(num_orbits_, 1) {
  for (const LiftedHop& hop : hops.hops()) {
    duration_us_.push_back(hop.hop.duration_us(chunk_bytes_));
    first_use_.push_back(uses_.size());
    for (const HopLink& part : hop.hop.links) {
      const int link = translations.place(part.link).orbit;
      const auto l = static_cast<std::size_t>(link);
      uses_.push_back({link, part.offset_us_of(chunk_bytes_), part.occupied_us(chunk_bytes_)});
      offsets_[l].push_back(uses_.back().offset_us);
      receivers_[l].push_back(hop.to);
    }
  }
  first_use_.push_back(uses_.size());
  std::vector<double> least_us(free_from_.size(), kInfinity);  // that a chunk occupies a link
  for (const Use& use : uses_) {
    double& least = least_us[static_cast<std::size_t>(use.link)];
    least = std::min(least, use.occupied_us);
  }
  for (std::size_t h = 0; h < hops.hops().size(); ++h) {
    const auto excess_of = [&](const Use& use) {
      return use.occupied_us / least_us[static_cast<std::size_t>(use.link)] - 1;
    };
    const auto links = uses(static_cast<int>(h));
    double& excess = excess_.emplace_back(0);
    for (const Use& use : links) excess = std::max(excess, excess_of(use));
    slow_link_.push_back(excess_of(links.back()) > kSlow - 1 ? links.front().link : -1);
  }
  const auto make_set = [](auto& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  for (auto& offsets : offsets_) make_set(offsets);
  for (auto& receivers : receivers_) make_set(receivers);
  const std::size_t chunks = num_chunks_ / order() / num_orbits_;
  for (std::size_t o = 0; o < num_orbits_; ++o) {
    const int orbit = static_cast<int>(o);
    for (const LinkId l : topology.in_links(topology.node_of(translations.gpu(orbit, 0))))
      in_GBps_[o] += topology.link(l).bandwidth_GBps;
    for (std::size_t k = 0; k < chunks; ++k) {
      const auto own = static_cast<std::uint32_t>((o * chunks + k) * order());
      promise(orbit, own);
      events_[0].arrivals.push_back({orbit, own});
    }
  }
  missing_ = 0;
  for (const std::size_t lacking : lacking_) missing_ += lacking;
}

std::uint64_t LiftedScheduler::key(int h, std::uint32_t chunk) const {
  // 48 bits of rank; the low 16 are left to chance.
  const auto receiver = static_cast<std::uint64_t>(hops_.hop(h).to);
  const std::uint64_t chance =
      mix_bits(chunk * 0x9e3779b97f4a7c15ULL + receiver * 0x2545F491ULL + rules_.seed) & kChance;
  return rank_[chunk / order()] | chance;
}

/// The sender of a hop has a chunk from now on.
void LiftedScheduler::arrive(int orbit, std::uint32_t chunk) {
  for (const int h : hops_.out_of(orbit)) {
    const LiftedHop& hop = hops_.hop(h);
    const std::uint32_t there = seen_from(chunk, hop.shift);
    if (has(hop.to, there)) continue;
    std::uint64_t key_there = key(h, there);
    if (rules_.order == LiftedOrder::oldest) {
      key_there |= std::bit_cast<std::uint64_t>(now_us_) & ~kChance;
    } else if (rules_.order == LiftedOrder::nearest) {
      // From the origin of (q, e) to the receiver: the mirror image of the table's -e.
      const std::size_t q = there / order();
      const std::size_t origin = q / (num_chunks_ / order() / num_orbits_);
      const float far = distances_.relay_us(origin, there % order(), static_cast<std::size_t>(hop.to));
      key_there |= static_cast<std::uint64_t>(far / distances_.diameter_us() * 0xffffff) << 16;
    }
    queues_[static_cast<std::size_t>(h)].push({key_there, there});
    waiting_[static_cast<std::size_t>(hop.to)] = 1;
  }
}

void LiftedScheduler::promise(int orbit, std::uint32_t chunk) {
  --lacking_[static_cast<std::size_t>(orbit)];
  has_[static_cast<std::size_t>(orbit) * words_ + chunk / 64] |= std::uint64_t{1} << (chunk % 64);
  distances_.add_holder(orbit, chunk);
  const std::size_t q = chunk / order();
  ++holders_[q];
  if (rules_.order == LiftedOrder::rarest) rank_[q] = coarse(holders_[q]) << 40;
  if (rules_.order == LiftedOrder::furthest) {
    const float farthest = distances_.farthest_us(q) / distances_.diameter_us();
    const auto closeness = static_cast<std::uint64_t>(0xffffff * (1 - std::min(1.0F, farthest)));
    rank_[q] = (closeness << 40) | (holders_[q] << 16);
  }
}

void LiftedScheduler::apply_events_until(double t_us) {
  while (!events_.empty() && events_.begin()->first <= t_us) {
    const Instant instant = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    const auto& arrivals = instant.arrivals;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      if (i + kAhead < arrivals.size()) {
        for (const int h : hops_.out_of(arrivals[i + kAhead].orbit))
          queues_[static_cast<std::size_t>(h)].fetch_end();
      }
      arrive(arrivals[i].orbit, arrivals[i].chunk);
    }
    for (const int link : instant.free_links) {
      for (const int orbit : receivers_[static_cast<std::size_t>(link)])
        waiting_[static_cast<std::size_t>(orbit)] = 1;
    }
  }
}

bool LiftedScheduler::idle(int h, double t_us) const {
  return std::ranges::all_of(uses(h), [&](const Use& use) {
    const double start = t_us + use.offset_us;
    return free_from_[static_cast<std::size_t>(use.link)] <= start + time_slack_us(start);
  });
}

bool LiftedScheduler::may_fall_back(int h) const {
  const LiftedHop& hop = hops_.hop(h);
  const double own = transmission_us(1, 1) / hop.hop.links.back().us_per_byte;
  const auto to = static_cast<std::size_t>(hop.to);
  const double others = in_GBps_[to] - own;
  if (any_way_ || others <= 1e-9 * own) return true;
  return transmission_us(chunk_bytes_ * static_cast<double>(lacking_[to]), others) >=
         duration_us_[static_cast<std::size_t>(h)];
}

/// Who sends slowly, such as over a damaged link into a switch, takes up the receiver's link for longer than
/// others would. Links that fall idle together find each other again and again: a receiver that lacks more
/// than those who could be served instead ends that.
bool LiftedScheduler::leaves_to_others(int h) const {
  const int link = slow_link_[static_cast<std::size_t>(h)];
  if (link < 0 || any_way_) return false;
  const std::vector<int>& receivers = receivers_[static_cast<std::size_t>(link)];
  std::size_t sum = 0;
  for (const int orbit : receivers) sum += lacking_[static_cast<std::size_t>(orbit)];
  return (lacking_[static_cast<std::size_t>(hops_.hop(h).to)] - 1) * receivers.size() > sum;
}

/// The best of `queue`, or nothing; what has been promised meanwhile goes, what had better wait for a nearer
/// holder moves to the fallbacks.
const HopQueue::Entry* LiftedScheduler::first(HopQueue& queue, int h, bool sort_out_fallbacks) {
  const bool keys_grow = rules_.order == LiftedOrder::rarest || rules_.order == LiftedOrder::furthest;
  const double wait_below_us = HolderDistances::kNearer * duration_us_[static_cast<std::size_t>(h)];
  const int receiver = hops_.hop(h).to;
  // Where nobody else is near enough the look at the chunk's distance, far away in memory, is spared.
  const bool may_wait = sort_out_fallbacks && distances_.nearest_other_us(receiver) < wait_below_us;
  while (!queue.empty()) {
    const HopQueue::Entry entry = queue.first();
    if (has(receiver, entry.chunk)) {
      queue.pop();
    } else if (may_wait && distances_.near_us(receiver, entry.chunk) < wait_below_us) {
      queue.pop();
      fallbacks_[static_cast<std::size_t>(h)].push(entry);
    } else if (keys_grow && (entry.key & ~kChance) != rank_[entry.chunk / order()]) {
      queue.replace_first({key(h, entry.chunk), entry.chunk});
    } else {
      return &queue.first();
    }
  }
  return nullptr;
}

bool LiftedScheduler::goes_first(const Choice& a, const Choice& b) const {
  if (a.fallback != b.fallback) return b.fallback;
  if (rules_.senders == LiftedSenders::fullest && a.alternatives != b.alternatives)
    return a.alternatives > b.alternatives;
  if (rules_.senders == LiftedSenders::fitting) {
    const double excess_a = excess_[static_cast<std::size_t>(a.hop)];
    const double excess_b = excess_[static_cast<std::size_t>(b.hop)];
    if (std::abs(excess_a - excess_b) > kSlow - 1) return excess_a < excess_b;
  }
  if (rules_.senders == LiftedSenders::scarcest && a.alternatives != b.alternatives)
    return a.alternatives < b.alternatives;
  return a.entry.key < b.entry.key;
}

bool LiftedScheduler::serve(int orbit, double t_us) {
  Choice best;
  for (const int h : hops_.into(orbit)) {
    const auto i = static_cast<std::size_t>(h);
    if ((queues_[i].empty() && fallbacks_[i].empty()) || !idle(h, t_us) || leaves_to_others(h)) continue;
    Choice choice{h};
    const HopQueue::Entry* entry = first(queues_[i], h, true);
    if (!entry && (best.hop < 0 || best.fallback) && may_fall_back(h)) {
      choice.fallback = true;
      entry = first(fallbacks_[i], h, false);
    }
    if (!entry) continue;
    choice.entry = *entry;
    choice.alternatives = choice.fallback ? fallbacks_[i].size() : queues_[i].size();
    if (best.hop < 0 || goes_first(choice, best)) best = choice;
  }
  if (best.hop < 0) return false;

  start({ChunkId{static_cast<std::size_t>(best.entry.chunk)}, best.hop, t_us});
  return true;
}

void LiftedScheduler::start(const Move& move) {
  const LiftedHop& hop = hops_.hop(move.hop);
  const auto chunk = static_cast<std::uint32_t>(move.chunk.value);
  for (const Use& use : uses(move.hop)) {
    const auto l = static_cast<std::size_t>(use.link);
    const double start = move.start_us + use.offset_us;
    const double end = free_from_[l] = start + use.occupied_us;
    for (const double offset : offsets_[l])
      events_[std::max(move.start_us, end - offset)].free_links.push_back(use.link);
  }
  const double arrival_us = move.start_us + duration_us_[static_cast<std::size_t>(move.hop)];
  events_[arrival_us].arrivals.push_back({hop.to, chunk});
  moves_.push_back(move);
  --missing_;
  promise(hop.to, chunk);
}

void LiftedScheduler::serve_receivers(double t_us) {
  std::vector<std::pair<std::size_t, int>> order;  // those that lack most first
  for (bool progress = true; progress;) {
    progress = false;
    order.clear();
    for (std::size_t o = 0; o < num_orbits_; ++o) {
      if (waiting_[o]) order.emplace_back(lacking_[o], static_cast<int>(o));
    }
    random_.shuffle(std::span(order));
    std::ranges::stable_sort(order, std::ranges::greater{}, [](const auto& entry) { return entry.first; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + kAhead < order.size()) fetch_ahead(order[i + kAhead].second);
      const auto [lacking, orbit] = order[i];
      const bool served = lacking > 0 && serve(orbit, t_us);
      progress = progress || served;
      if (!served) waiting_[static_cast<std::size_t>(orbit)] = 0;
    }
  }
}

std::optional<std::vector<Move>> LiftedScheduler::run(const Deadline& deadline) {
  while (missing_ > 0) {
    if (deadline.is_over()) return std::nullopt;
    any_way_ = events_.empty();
    if (any_way_) {
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

std::optional<std::vector<Move>> lifted_moves(const Topology& topology, const Translations& translations,
                                              const LiftedHops& hops, const Demand& demand,
                                              const LiftedRules& rules, const Deadline& deadline) {
  return LiftedScheduler(topology, translations, hops, demand, rules).run(deadline);
}

}  // namespace rondo
