#include "list_scheduler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

/// A set of chunks as bits; all sets of a schedule have the same length.
using ChunkSet = std::vector<std::uint64_t>;

void insert(ChunkSet& set, std::size_t c) {
  set[c / 64] |= std::uint64_t{1} << (c % 64);
}
void erase(ChunkSet& set, std::size_t c) {
  set[c / 64] &= ~(std::uint64_t{1} << (c % 64));
}

bool contains(const ChunkSet& set, std::size_t c) {
  return (set[c / 64] >> (c % 64) & 1) != 0;
}

class ListScheduler {
 public:
  ListScheduler(const Topology& topology, const HopTable& hops, const Demand& demand,
                const Deliveries& deliveries, const ListRules& rules, double from_us);
  void resume(const Begun& begun);
  void keep(std::span<const Move> moves);
  ListedSchedule run();

 private:
  enum class EventKind : std::uint8_t { arrival, link_free };
  struct Event {
    double t_us;
    EventKind kind;
    int where;  ///< GPU or link
    int chunk;
    bool operator>(const Event& o) const {
      return std::tie(t_us, kind, where, chunk) > std::tie(o.t_us, o.kind, o.where, o.chunk);
    }
  };
  struct Choice {
    int hop = -1;
    int chunk = -1;
    bool fallback = false;
    std::uint64_t key = ~std::uint64_t{0};
    int alternatives = 0;  ///< chunks that the hop could carry without falling back
  };

  struct Transfer {
    Move move;
    double arrival_us;
  };

  void wake_when_free(const Send& send);
  void start(const Move& move);
  ListedSchedule useful_sends() const;
  void apply_events_until(double t_us);
  void wake_hops_of_link(LinkId link);
  void serve_receivers(double t_us);
  bool serve(std::size_t receiver, double t_us);
  Choice best_chunk(int hop, std::size_t receiver, double t_us) const;
  bool goes_first(const Choice& a, const Choice& b) const;
  bool may_fall_back(const Hop& hop, std::size_t receiver, double duration_us) const;
  void promise(std::size_t chunk, GpuId receiver, double arrival_us);
  /// Whether the receiver had better wait for a nearer holder than take the chunk over a hop.
  bool better_wait(std::size_t chunk, std::size_t receiver, double duration_us, double t_us) const;
  void update_key(std::size_t chunk);
  const double* relay_us_from(std::size_t chunk, GpuId gpu) const {
    const std::size_t contribution = chunk / static_cast<std::size_t>(demand_.chunks_per_contribution());
    return relay_us_[size_class_[contribution]].data() + gpu.index() * num_gpus_;
  }
  double near_us(std::size_t chunk, std::size_t gpu) const { return near_us_[chunk * num_gpus_ + gpu]; }

  const Topology& topology_;
  const HopTable& hops_;
  const Demand& demand_;
  const Deliveries& deliveries_;
  const ListRules& rules_;
  std::size_t num_gpus_;
  std::size_t num_chunks_;
  double from_us_;  ///< nothing new starts before
  Random random_;
  LinkTimetable timetable_;

  std::vector<std::size_t> size_class_;  ///< per contribution: chunks of equal bytes
  std::vector<double> class_bytes_;      ///< per size class
  double smallest_bytes_ = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> relay_us_;  ///< per size class: HopTable::relay_distance_us
  std::vector<ChunkSet> holds_;                ///< per GPU: chunks that are there
  std::vector<ChunkSet> lacks_;                ///< per GPU: wanted chunks that nobody has promised yet
  std::vector<double> diameter_us_;            ///< per size class: the greatest finite relay distance
  std::vector<double> lacking_bytes_;          ///< per GPU
  std::vector<double> in_bandwidth_GBps_;      ///< per GPU
  std::vector<std::vector<double>> offsets_;   ///< per link: how long after its hop starts it is used
  std::vector<std::vector<int>> hops_of_link_;
  std::vector<float> near_us_;  ///< (chunk, GPU): distance from the nearest current or promised holder
  /// Rule `soonest`, per (chunk, GPU): distance from the nearest GPU that holds it, and the promise that
  /// would bring it first.
  std::vector<float> held_near_us_;
  struct Expectation {
    double lands_us = 0;                                          ///< at the promised holder
    double arrives_us = std::numeric_limits<double>::infinity();  ///< relayed from there
  };
  std::vector<Expectation> expected_;
  std::vector<int> holders_;        ///< per chunk, promised ones included
  std::vector<std::uint64_t> key_;  ///< per chunk: smaller goes first
  std::vector<char> stalled_;       ///< per hop: had nothing to send when last looked at
  std::vector<char> waiting_;       ///< per GPU: to be served at this event
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Send> sends_;          ///< of transfer 0, 1, ..., one a link of its hop
  std::vector<Transfer> transfers_;  ///< by start
  std::size_t missing_ = 0;          ///< deliveries nobody has promised yet
  bool any_way_ = false;             ///< nothing moves under the rules: anything that helps may be sent
  double latest_us_ = 0;             ///< arrival so far
  double now_us_ = 0;                ///< time of the event at hand
};

ListScheduler::ListScheduler(const Topology& topology, const HopTable& hops, const Demand& demand,
                             const Deliveries& deliveries, const ListRules& rules, double from_us)
    : topology_(topology),
      hops_(hops),
      demand_(demand),
      deliveries_(deliveries),
      rules_(rules),
      num_gpus_(topology.num_gpus()),
      num_chunks_(demand.num_chunks()),
      from_us_(from_us),
      random_(rules.seed),
      timetable_(topology),
      lacking_bytes_(num_gpus_, 0.0),
      in_bandwidth_GBps_(num_gpus_, 0.0),
      offsets_(topology.num_links()),
      hops_of_link_(topology.num_links()),
      near_us_(num_chunks_ * num_gpus_, std::numeric_limits<float>::infinity()),
      held_near_us_(rules.soonest ? num_chunks_ * num_gpus_ : 0, std::numeric_limits<float>::infinity()),
      expected_(held_near_us_.size()),
      holders_(num_chunks_, 0),
      key_(num_chunks_, 0),
      stalled_(hops.hops().size(), 0),
      waiting_(num_gpus_, 1) {
  const auto chunks_each = static_cast<std::size_t>(demand.chunks_per_contribution());
  for (const Contribution& contribution : demand.contributions()) {
    const double bytes = contribution.bytes / demand.chunks_per_contribution();
    const auto known = std::find(class_bytes_.begin(), class_bytes_.end(), bytes);
    size_class_.push_back(static_cast<std::size_t>(known - class_bytes_.begin()));
    if (known == class_bytes_.end()) {
      class_bytes_.push_back(bytes);
      smallest_bytes_ = std::min(smallest_bytes_, bytes);
      relay_us_.push_back(hops.relay_distance_us(bytes));
      double diameter = 0;
      for (const double d : relay_us_.back()) diameter = std::isfinite(d) ? std::max(diameter, d) : diameter;
      diameter_us_.push_back(diameter);
    }
  }
  for (std::size_t h = 0; h < hops.hops().size(); ++h) {
    const Hop& hop = hops.hops()[h];
    for (const HopLink& part : hop.links) {
      auto& users = hops_of_link_[part.link.index()];
      if (users.empty() || users.back() != static_cast<int>(h)) users.push_back(static_cast<int>(h));
      for (const double bytes : class_bytes_) {
        offsets_[part.link.index()].push_back(part.offset_us_of(bytes));
      }
    }
  }
  // When a link of a group falls idle, hops over the others of the group may start as well.
  const auto own_hops = hops_of_link_;
  const auto own_offsets = offsets_;
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    for (const LinkId l : group.links) {
      for (const LinkId other : group.links) {
        if (l == other) continue;
        auto append = [&](auto& to, const auto& from) {
          to[l.index()].insert(to[l.index()].end(), from[other.index()].begin(), from[other.index()].end());
        };
        append(hops_of_link_, own_hops);
        append(offsets_, own_offsets);
      }
    }
  }
  for (auto& offsets : offsets_) {
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  }
  for (std::size_t g = 0; g < num_gpus_; ++g) {
    for (const LinkId l : topology.in_links(topology.node_of(GpuId{g}))) {
      in_bandwidth_GBps_[g] += topology.link(l).bandwidth_GBps;
    }
  }

  const ChunkSet none((num_chunks_ + 63) / 64, 0);
  holds_.assign(num_gpus_, none);
  lacks_.assign(num_gpus_, none);
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    const Contribution& contribution = demand.contributions()[i];
    for (std::size_t c = i * chunks_each; c < (i + 1) * chunks_each; ++c) {
      for (const GpuId g : deliveries.receivers[i]) {
        insert(lacks_[g.index()], c);
        lacking_bytes_[g.index()] += demand.bytes(ChunkId{c});
        ++missing_;
      }
      promise(c, contribution.origin, contribution.ready_us);
      events_.push({std::max(contribution.ready_us, from_us), EventKind::arrival, contribution.origin.value,
                    static_cast<int>(c)});
    }
  }
}

void ListScheduler::resume(const Begun& begun) {
  for (const Holding& holding : begun.holdings) {
    const std::size_t g = holding.gpu.index();
    const std::size_t c = holding.chunk.index();
    if (contains(lacks_[g], c)) {
      erase(lacks_[g], c);
      lacking_bytes_[g] -= demand_.bytes(holding.chunk);
      --missing_;
    }
    promise(c, holding.gpu, holding.from_us);
    events_.push(
        {std::max(holding.from_us, from_us_), EventKind::arrival, holding.gpu.value, holding.chunk.value});
  }
  for (const Send& send : begun.on_links) {
    timetable_.occupy(send, demand_.bytes(send.chunk));
    wake_when_free(send);
  }
}

void ListScheduler::keep(std::span<const Move> moves) {
  for (const Move& move : moves) {
    now_us_ = move.start_us;
    start(move);
  }
}

void ListScheduler::wake_when_free(const Send& send) {
  const double not_before_us = std::max(now_us_, from_us_);
  for (const double offset : offsets_[send.link.index()]) {
    events_.push({std::max(not_before_us, send.end_us - offset), EventKind::link_free, send.link.value, 0});
  }
}

void ListScheduler::start(const Move& move) {
  const Hop& hop = hops_.hop(move.hop);
  const double bytes = demand_.bytes(move.chunk);
  const std::size_t first = sends_.size();
  const double arrival = timetable_.reserve(hop, move.chunk, bytes, move.start_us, sends_);
  for (std::size_t s = first; s < sends_.size(); ++s) wake_when_free(sends_[s]);
  events_.push({std::max(arrival, from_us_), EventKind::arrival, hop.dst.value, move.chunk.value});
  transfers_.push_back({move, arrival});
  latest_us_ = std::max(latest_us_, arrival);
  if (contains(lacks_[hop.dst.index()], move.chunk.index())) {
    erase(lacks_[hop.dst.index()], move.chunk.index());
    lacking_bytes_[hop.dst.index()] -= bytes;
    --missing_;
  }
  promise(move.chunk.index(), hop.dst, arrival);
}

void ListScheduler::promise(std::size_t chunk, GpuId receiver, double arrival_us) {
  const double* from_receiver = relay_us_from(chunk, receiver);
  float* near = near_us_.data() + chunk * num_gpus_;
  for (std::size_t g = 0; g < num_gpus_; ++g)
    near[g] = std::min(near[g], static_cast<float>(from_receiver[g]));
  if (rules_.soonest) {
    Expectation* expected = expected_.data() + chunk * num_gpus_;
    for (std::size_t g = 0; g < num_gpus_; ++g) {
      const double arrives = arrival_us + from_receiver[g];
      if (arrives < expected[g].arrives_us || expected[g].lands_us <= now_us_)
        expected[g] = {arrival_us, arrives};
    }
  }
  ++holders_[chunk];
  update_key(chunk);
}

void ListScheduler::update_key(std::size_t chunk) {
  // 24 bits of holders and 24 bits of distance of the farthest waiting receiver (farther = smaller); the low
  // 16 bits are left to chance.
  const auto holders = static_cast<std::uint64_t>(holders_[chunk]);
  if (rules_.chunks == ChunkOrder::rarest && !rules_.distance_breaks_ties) {
    key_[chunk] = holders << 40;
    return;
  }
  const std::size_t i = chunk / static_cast<std::size_t>(demand_.chunks_per_contribution());
  double farthest = 0;
  for (const GpuId g : deliveries_.receivers[i]) farthest = std::max(farthest, near_us(chunk, g.index()));
  const double diameter = diameter_us_[size_class_[i]];
  const auto levels = static_cast<double>((1 << 24) - 1);
  const auto closeness = static_cast<std::uint64_t>(levels * (1 - std::min(1.0, farthest / diameter)));
  key_[chunk] = rules_.chunks == ChunkOrder::rarest ? (holders << 40) | (closeness << 16)
                                                    : (closeness << 40) | (holders << 16);
}

void ListScheduler::wake_hops_of_link(LinkId link) {
  for (const int h : hops_of_link_[link.index()]) waiting_[hops_.hop(h).dst.index()] = 1;
}

void ListScheduler::apply_events_until(double t_us) {
  while (!events_.empty() && events_.top().t_us <= t_us) {
    const Event event = events_.top();
    events_.pop();
    if (event.kind == EventKind::link_free) {
      wake_hops_of_link(LinkId{event.where});
      continue;
    }
    const GpuId gpu{event.where};
    const auto chunk = static_cast<std::size_t>(event.chunk);
    insert(holds_[gpu.index()], chunk);
    if (rules_.soonest) {
      const double* from_gpu = relay_us_from(chunk, gpu);
      float* near = held_near_us_.data() + chunk * num_gpus_;
      for (std::size_t g = 0; g < num_gpus_; ++g)
        near[g] = std::min(near[g], static_cast<float>(from_gpu[g]));
    }
    for (const int h : hops_.out_of(gpu)) {
      stalled_[static_cast<std::size_t>(h)] = 0;
      waiting_[hops_.hop(h).dst.index()] = 1;
    }
  }
}

bool ListScheduler::may_fall_back(const Hop& hop, std::size_t receiver, double duration_us) const {
  const double own = transmission_us(1, 1) / hop.links.back().us_per_byte;
  const double others = in_bandwidth_GBps_[receiver] - own;
  if (others <= 1e-9 * own) return true;
  return transmission_us(lacking_bytes_[receiver], others) >= duration_us;
}

bool ListScheduler::better_wait(std::size_t chunk, std::size_t receiver, double duration_us,
                                double t_us) const {
  if (near_us(chunk, receiver) >= duration_us * (1 - 1e-5)) return false;
  if (!rules_.soonest) return true;
  const std::size_t i = chunk * num_gpus_ + receiver;
  // What has landed counts among the holders, from now on.
  const double relayed =
      expected_[i].lands_us > t_us ? expected_[i].arrives_us : std::numeric_limits<double>::infinity();
  return std::min(relayed, t_us + held_near_us_[i]) < t_us + duration_us * (1 - 1e-5);
}

ListScheduler::Choice ListScheduler::best_chunk(int h, std::size_t receiver, double t_us) const {
  const Hop& hop = hops_.hop(h);
  const ChunkSet& there = holds_[hop.src.index()];
  const ChunkSet& wanted = lacks_[receiver];
  const std::uint64_t salt = receiver * 0x2545F491ULL + rules_.seed;
  const bool count = rules_.senders == SenderOrder::fullest;
  Choice best{h, -1, true};
  int alternatives = 0;
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    for (std::uint64_t bits = there[w] & wanted[w]; bits != 0; bits &= bits - 1) {
      const std::size_t c = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      const std::uint64_t key = key_[c] | (mix_bits(c * 0x9e3779b97f4a7c15ULL + salt) & 0xffff);
      // Distances are looked up last: they are far apart in memory.
      if (!count && !best.fallback && key >= best.key) continue;
      const double duration = hop.duration_us(demand_.bytes(ChunkId{c}));
      const bool fallback = better_wait(c, receiver, duration, t_us);
      alternatives += fallback ? 0 : 1;
      if (fallback && (!best.fallback || (!any_way_ && !may_fall_back(hop, receiver, duration)))) continue;
      if (best.chunk < 0 || (best.fallback && !fallback) || key < best.key) {
        best = {h, static_cast<int>(c), fallback, key};
      }
    }
  }
  best.alternatives = alternatives;
  return best;
}

bool ListScheduler::goes_first(const Choice& a, const Choice& b) const {
  if (a.fallback != b.fallback) return b.fallback;
  if (rules_.senders == SenderOrder::fullest && a.alternatives != b.alternatives) {
    return a.alternatives > b.alternatives;
  }
  return a.key < b.key;
}

bool ListScheduler::serve(std::size_t receiver, double t_us) {
  Choice best;
  for (const int h : hops_.into(GpuId{receiver})) {
    const auto i = static_cast<std::size_t>(h);
    if (stalled_[i]) continue;
    const Hop& hop = hops_.hop(h);
    if (!timetable_.can_start(hop, smallest_bytes_, t_us)) continue;
    const Choice choice = best_chunk(h, receiver, t_us);
    if (choice.chunk < 0) {
      stalled_[i] = 1;
      continue;
    }
    if ((best.hop < 0 || goes_first(choice, best)) &&
        timetable_.can_start(hop, demand_.bytes(ChunkId{choice.chunk}), t_us))
      best = choice;
  }
  if (best.hop < 0) return false;

  start({ChunkId{best.chunk}, best.hop, t_us});
  return true;
}

void ListScheduler::serve_receivers(double t_us) {
  std::vector<std::pair<double, std::size_t>> order;
  for (bool progress = true; progress;) {
    progress = false;
    order.clear();
    for (std::size_t g = 0; g < num_gpus_; ++g) {
      if (waiting_[g]) order.emplace_back(-lacking_bytes_[g], g);
    }
    random_.shuffle(std::span(order));
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [need, g] : order) {
      if (serve(g, t_us)) {
        progress = true;
      } else {
        waiting_[g] = 0;
      }
    }
  }
}

ListedSchedule ListScheduler::run() {
  while (missing_ > 0) {
    if (events_.empty()) {
      if (any_way_) {
        throw Error(ExitCode::unavailable, "list scheduling: " + std::to_string(missing_) +
                                               " deliveries have no way that the fabric's shared bandwidth "
                                               "allows; raise the groups' bandwidth "
                                               "to at least that of one of their links");
      }
      any_way_ = true;
      std::fill(stalled_.begin(), stalled_.end(), 0);
      std::fill(waiting_.begin(), waiting_.end(), 1);
      now_us_ = latest_us_;
      serve_receivers(now_us_);
      continue;
    }
    any_way_ = false;
    const double t = now_us_ = events_.top().t_us;
    apply_events_until(t + 1e-9 + 1e-12 * t);
    serve_receivers(t);
  }
  ListedSchedule result = useful_sends();
  canonicalise(result.schedule);
  return result;
}

/// Without relays that turned out to be needless, the last transfer first: one serves a destination or a
/// later one.
ListedSchedule ListScheduler::useful_sends() const {
  std::vector<ChunkSet> needed(num_gpus_, ChunkSet((num_chunks_ + 63) / 64, 0));
  for (std::size_t c = 0; c < num_chunks_; ++c) {
    for (const GpuId g : demand_.destinations(ChunkId{c})) insert(needed[g.index()], c);
  }
  ListedSchedule result;
  Schedule& schedule = result.schedule;
  std::size_t end = sends_.size();
  for (auto t = transfers_.rbegin(); t != transfers_.rend(); ++t) {
    const Hop& hop = hops_.hop(t->move.hop);
    const std::size_t chunk = t->move.chunk.index();
    const std::size_t begin = end - hop.links.size();
    if (contains(needed[hop.dst.index()], chunk)) {
      insert(needed[hop.src.index()], chunk);
      result.moves.push_back(t->move);
      schedule.sends.insert(schedule.sends.end(), sends_.begin() + static_cast<std::ptrdiff_t>(begin),
                            sends_.begin() + static_cast<std::ptrdiff_t>(end));
      // A relay's arrival is followed by that of what it is needed for.
      schedule.finish_us = std::max(schedule.finish_us, t->arrival_us);
    }
    end = begin;
  }
  std::ranges::reverse(result.moves);
  return result;
}

}  // namespace

Schedule list_schedule(const Topology& topology, const HopTable& hops, const Demand& demand,
                       const Deliveries& deliveries, const ListRules& rules, const Begun* begun) {
  ListScheduler scheduler(topology, hops, demand, deliveries, rules, begun ? begun->time_us : 0);
  if (begun) scheduler.resume(*begun);
  return scheduler.run().schedule;
}

ListedSchedule list_schedule_after(const KeptMoves& kept, const Topology& topology, const HopTable& hops,
                                   const Demand& demand, const Deliveries& deliveries,
                                   const ListRules& rules) {
  ListScheduler scheduler(topology, hops, demand, deliveries, rules, kept.from_us);
  scheduler.keep(kept.moves);
  return scheduler.run();
}

}  // namespace rondo
