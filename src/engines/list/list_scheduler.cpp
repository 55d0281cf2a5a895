#include "list_scheduler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "chunk_set.hpp"
#include "crowded_hops.hpp"
#include "holder_table.hpp"
#include "joined_chunks.hpp"
#include "pairs.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/time_slack.hpp"
#include "rondo/core/units.hpp"
#include "useful_sends.hpp"
#include "wake_table.hpp"

namespace rondo {
namespace {

class ListScheduler {
 public:
  ListScheduler(const Topology& topology, const HopTable& hops, const Demand& demand,
                const Deliveries& deliveries, const ListRules& rules, double from_us);
  void resume(const PartialSchedule& partial);
  /// Nothing where `deadline`, unless null, is over first.
  std::optional<Schedule> run(const Deadline* deadline);

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

  void wake_when_bandwidth_changes();
  void wake_when_free(const Send& send);
  void start(const Move& move);
  void start_together(const Choice& first, double t_us);
  void note(const Move& move, double arrival_us);
  void apply_events_until(double t_us);
  void serve_receivers(double t_us);
  bool serve(std::size_t receiver, double t_us);
  std::optional<Choice> answer_to(int h, double t_us) const;
  void weigh_pair(Choice& choice, double t_us) const;
  bool may_fall_back(int hop, std::size_t receiver, double bytes) const;
  /// Nothing where the hop has nothing to send.
  std::optional<Choice> best_chunk(int hop, std::size_t receiver, double t_us) const;

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

  HolderTable holders_;
  WakeTable wakes_;
  double smallest_bytes_;              ///< of a chunk
  std::vector<ChunkSet> holds_;        ///< per GPU: chunks that are there
  std::vector<ChunkSet> lacks_;        ///< per GPU: wanted chunks that nobody has promised yet
  std::vector<double> lacking_bytes_;  ///< per GPU
  std::vector<double> in_GBps_;        ///< per GPU
  std::vector<char> crowded_;          ///< per hop: over trunks that are narrow for all that is lacking
  Pairs pairs_;                        ///< of rule `pairwise`
  std::vector<char> stalled_;          ///< per hop: had nothing to send when last looked at
  std::vector<char> waiting_;          ///< per GPU: to be served at this event
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Send> sends_;                ///< of transfer 0, 1, ..., one a link of its hop
  std::vector<ListedTransfer> transfers_;  ///< by start
  std::size_t missing_ = 0;                ///< deliveries nobody has promised yet
  bool joins_ = false;                     ///< chunks go together
  bool is_pairwise_ = false;
  bool rules_are_off_ = false;  ///< no transfer keeps the rules: any one that helps may start
  double latest_us_ = 0;        ///< arrival so far
  double now_us_ = 0;           ///< time of the event at hand
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
      timetable_(topology, rules.concurrency),
      holders_(hops, demand, deliveries, rules),
      wakes_(make_wake_table(topology, hops, holders_.chunk_sizes())),
      smallest_bytes_(*std::ranges::min_element(holders_.chunk_sizes())),
      lacking_bytes_(num_gpus_, 0.0),
      stalled_(hops.hops().size(), 0),
      waiting_(num_gpus_, 1) {
  const auto chunks_each = static_cast<std::size_t>(demand.chunks_per_contribution());
  for (std::size_t g = 0; g < num_gpus_; ++g)
    in_GBps_.push_back(goodput_into_GBps(topology, GpuId{g}, smallest_bytes_));
  wake_when_bandwidth_changes();
  joins_ = rules.joined && topology.has_message_costs();
  is_pairwise_ = rules.pairwise && joins_;
  if (is_pairwise_) pairs_ = make_pairs(hops, rules.seed);

  holds_.assign(num_gpus_, no_chunks(num_chunks_));
  lacks_.assign(num_gpus_, no_chunks(num_chunks_));
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    const Contribution& contribution = demand.contributions()[i];
    for (std::size_t c = i * chunks_each; c < (i + 1) * chunks_each; ++c) {
      for (const GpuId g : deliveries.receivers[i]) {
        insert(lacks_[g.index()], c);
        lacking_bytes_[g.index()] += demand.bytes(ChunkId{c});
        ++missing_;
      }
      const auto sources = contribution.all_sources();
      for (std::size_t s = 0; s < sources.size(); ++s) {
        const double ready_us = contribution.ready_us_of(s);
        holders_.promise(c, sources[s], ready_us, now_us_);
        events_.push(
            {std::max(ready_us, from_us), EventKind::arrival, sources[s].value, static_cast<int>(c)});
      }
    }
  }
  crowded_ = crowded_hops(topology, hops, lacking_bytes_, smallest_bytes_);
}

void ListScheduler::wake_when_bandwidth_changes() {
  for (std::size_t l = 0; l < topology_.num_links(); ++l) {
    for (const BandwidthStep& step : topology_.links()[l].bandwidth_steps) {
      for (const double offset : wakes_.offsets_us(l))
        events_.push(
            {std::max(from_us_, step.from_us - offset), EventKind::link_free, static_cast<int>(l), 0});
    }
  }
}

void ListScheduler::resume(const PartialSchedule& partial) {
  for (const Holding& holding : partial.holdings) {
    const std::size_t g = holding.gpu.index();
    const std::size_t c = holding.chunk.index();
    if (contains(lacks_[g], c)) {
      erase(lacks_[g], c);
      lacking_bytes_[g] -= demand_.bytes(holding.chunk);
      --missing_;
    }
    holders_.promise(c, holding.gpu, holding.from_us, now_us_);
    events_.push(
        {std::max(holding.from_us, from_us_), EventKind::arrival, holding.gpu.value, holding.chunk.value});
  }
  for (const Send& send : partial.on_links) {
    timetable_.occupy(send, send.has_rate() ? 0 : demand_.bytes(send.chunk));
    wake_when_free(send);
  }
}

void ListScheduler::wake_when_free(const Send& send) {
  const double not_before_us = std::max(now_us_, from_us_);
  const double next_us = timetable_.next_start_us(send);
  for (const double offset : wakes_.offsets_us(send.link.index())) {
    events_.push({std::max(not_before_us, send.end_us - offset), EventKind::link_free, send.link.value, 0});
    if (next_us < send.end_us)
      events_.push({std::max(not_before_us, next_us - offset), EventKind::link_free, send.link.value, 0});
  }
}

void ListScheduler::start(const Move& move) {
  const Hop& hop = hops_.hop(move.hop);
  const std::size_t first = sends_.size();
  const double arrival =
      timetable_.reserve(hop, move.chunk, demand_.bytes(move.chunk), move.start_us, sends_);
  for (std::size_t s = first; s < sends_.size(); ++s) wake_when_free(sends_[s]);
  note(move, arrival);
}

/// The chunk is under way.
void ListScheduler::note(const Move& move, double arrival_us) {
  const Hop& hop = hops_.hop(move.hop);
  events_.push({std::max(arrival_us, from_us_), EventKind::arrival, hop.dst.value, move.chunk.value});
  transfers_.push_back({move, arrival_us});
  latest_us_ = std::max(latest_us_, arrival_us);
  if (contains(lacks_[hop.dst.index()], move.chunk.index())) {
    erase(lacks_[hop.dst.index()], move.chunk.index());
    lacking_bytes_[hop.dst.index()] -= demand_.bytes(move.chunk);
    --missing_;
  }
  holders_.promise(move.chunk.index(), hop.dst, arrival_us, now_us_);
}

/// The chunk and as many others as may go with it, in one transfer.
void ListScheduler::start_together(const Choice& first, double t_us) {
  const Hop& hop = hops_.hop(first.hop);
  const std::size_t receiver = hop.dst.index();
  const ChunkSet& there = holds_[hop.src.index()];
  const ChunkSet& wanted = lacks_[receiver];
  std::vector<KeyedChunk> others;
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    for (std::uint64_t bits = there[w] & wanted[w]; bits != 0; bits &= bits - 1) {
      const std::size_t c = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      if (c == first.chunk) continue;
      const double bytes = demand_.bytes(ChunkId{c});
      if (holders_.better_wait(c, receiver, hop.duration_us(holders_.near_share() * bytes), t_us)) continue;
      others.emplace_back(holders_.key(c) | chance(c, receiver, rules_.seed), ChunkId{c});
    }
  }
  std::ranges::sort(others);
  const std::vector<ChunkId> chunks = joined_chunks(hop, ChunkId{std::size_t{first.chunk}}, others, demand_,
                                                    timetable_, t_us, is_pairwise_ && pairs_.all_together);
  double bytes = 0;
  for (const ChunkId chunk : chunks) bytes += demand_.bytes(chunk);
  // By chunk, as if each went alone: what turns out to be needless is left out by itself.
  std::vector<Send> together;
  const double arrival = timetable_.reserve(hop, chunks, bytes, t_us, together);
  const auto base = static_cast<std::int32_t>(sends_.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    for (std::size_t l = 0; l < hop.links.size(); ++l) {
      Send& send = sends_.emplace_back(together[l * chunks.size() + i]);
      if (send.transfer != kNoTransfer) send.transfer += base;
      if (i == 0) wake_when_free(send);
    }
    note({chunks[i], first.hop, t_us}, arrival);
  }
}

void ListScheduler::apply_events_until(double t_us) {
  while (!events_.empty() && events_.top().t_us <= t_us) {
    const Event event = events_.top();
    events_.pop();
    if (event.kind == EventKind::link_free) {
      for (const int g : wakes_.receivers(static_cast<std::size_t>(event.where)))
        waiting_[static_cast<std::size_t>(g)] = 1;
      continue;
    }
    const GpuId gpu{event.where};
    const auto chunk = static_cast<std::size_t>(event.chunk);
    insert(holds_[gpu.index()], chunk);
    holders_.land(chunk, gpu);
    for (const int h : hops_.out_of(gpu)) {
      stalled_[static_cast<std::size_t>(h)] = 0;
      waiting_[hops_.hop(h).dst.index()] = 1;
    }
  }
}

bool ListScheduler::may_fall_back(int h, std::size_t receiver, double bytes) const {
  if (rules_are_off_) return true;
  return !crowded_[static_cast<std::size_t>(h)] &&
         others_are_busy_longer(hops_.hop(h), bytes, in_GBps_[receiver], lacking_bytes_[receiver]);
}

std::optional<Choice> ListScheduler::best_chunk(int h, std::size_t receiver, double t_us) const {
  const Hop& hop = hops_.hop(h);
  const ChunkSet& there = holds_[hop.src.index()];
  const ChunkSet& wanted = lacks_[receiver];
  const bool count = rules_.senders == SenderOrder::fullest;
  std::optional<Choice> best;
  std::size_t alternatives = 0;
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    for (std::uint64_t bits = there[w] & wanted[w]; bits != 0; bits &= bits - 1) {
      const std::size_t c = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      const std::uint64_t key = holders_.key(c) | chance(c, receiver, rules_.seed);
      // Distances are looked up last: they are far apart in memory.
      if (!count && best && !best->fallback && key >= best->key) continue;
      const double bytes = demand_.bytes(ChunkId{c});
      const double near_us = timetable_.duration_us(hop, holders_.near_share() * bytes, t_us);
      const bool fallback = holders_.better_wait(c, receiver, near_us, t_us);
      alternatives += fallback ? 0 : 1;
      if (fallback && ((best && !best->fallback) || !may_fall_back(h, receiver, bytes))) continue;
      if (!best || (best->fallback && !fallback) || key < best->key)
        best = Choice{h, static_cast<std::uint32_t>(c), fallback, key};
    }
  }
  if (best) best->alternatives = alternatives;
  return best;
}

bool ListScheduler::serve(std::size_t receiver, double t_us) {
  Choice best;
  for (const int h : hops_.into(GpuId{receiver})) {
    const auto i = static_cast<std::size_t>(h);
    if (stalled_[i]) continue;
    const Hop& hop = hops_.hop(h);
    if (!timetable_.can_start(hop, smallest_bytes_, t_us)) continue;
    std::optional<Choice> choice = best_chunk(h, receiver, t_us);
    if (!choice || (is_pairwise_ && !rules_are_off_ && choice->alternatives < pairs_.least_chunks[i])) {
      stalled_[i] = 1;
      continue;
    }
    if (is_pairwise_ && !choice->fallback) weigh_pair(*choice, t_us);
    if ((best.hop < 0 || goes_first(*choice, best, rules_.senders)) &&
        timetable_.can_start(hop, demand_.bytes(ChunkId{std::size_t{choice->chunk}}), t_us))
      best = *choice;
  }
  if (best.hop < 0) return false;

  if (joins_ && !best.fallback) {
    start_together(best, t_us);
    if (is_pairwise_) {
      if (const std::optional<Choice> answer = answer_to(best.hop, t_us)) start_together(*answer, t_us);
    }
  } else {
    start({ChunkId{std::size_t{best.chunk}}, best.hop, t_us});
  }
  return true;
}

/// What the receiver could send back at the same time.
std::optional<Choice> ListScheduler::answer_to(int h, double t_us) const {
  const int back = pairs_.back[static_cast<std::size_t>(h)];
  if (back < 0 || !timetable_.can_start(hops_.hop(back), smallest_bytes_, t_us)) return std::nullopt;
  std::optional<Choice> choice = best_chunk(back, hops_.hop(back).dst.index(), t_us);
  if (!choice || choice->fallback ||
      choice->alternatives < pairs_.least_chunks[static_cast<std::size_t>(back)] ||
      !timetable_.can_start(hops_.hop(back), demand_.bytes(ChunkId{std::size_t{choice->chunk}}), t_us))
    return std::nullopt;
  return choice;
}

/// Both that exchange hold the same afterwards, so that others learn the most from either: of pairs the one
/// goes first that learns most together, then the one whose chunks come nearest to the GPUs that wait for
/// them.
void ListScheduler::weigh_pair(Choice& choice, double t_us) const {
  const Hop& hop = hops_.hop(choice.hop);
  double progress = holders_.progress(choice.chunk, hop.dst);
  if (const std::optional<Choice> answer = answer_to(choice.hop, t_us)) {
    choice.alternatives += answer->alternatives;
    progress += holders_.progress(answer->chunk, hop.src);
  }
  const std::uint64_t rule = pairs_.by_number ? hop.src.index() ^ hop.dst.index() : closeness(progress, 2.0);
  choice.key = make_key(rule, 0) | chance(choice.chunk, hop.dst.index(), rules_.seed);
}

void ListScheduler::serve_receivers(double t_us) {
  serve_in_turn(
      waiting_, lacking_bytes_, random_, [&](std::size_t g) { return serve(g, t_us); }, [](std::size_t) {});
}

std::optional<Schedule> ListScheduler::run(const Deadline* deadline) {
  while (missing_ > 0) {
    if (deadline && deadline->is_over()) return std::nullopt;
    if (events_.empty()) {
      if (rules_are_off_) {
        throw Error(ExitCode::unavailable, "list scheduling: " + std::to_string(missing_) +
                                               " deliveries have no path that the fabric's shared bandwidth "
                                               "allows; raise the groups' bandwidth "
                                               "to at least that of one of their links, or keep links "
                                               "up that there is no way around (bandwidth_steps)");
      }
      rules_are_off_ = true;
      std::fill(stalled_.begin(), stalled_.end(), 0);
      std::fill(waiting_.begin(), waiting_.end(), 1);
      now_us_ = latest_us_;
      serve_receivers(now_us_);
      continue;
    }
    rules_are_off_ = false;
    const double t = now_us_ = events_.top().t_us;
    apply_events_until(t + time_slack_us(t));
    serve_receivers(t);
  }
  Schedule result = useful_sends(hops_, demand_, transfers_, sends_);
  // Transfers that have lost needless chunks end earlier.
  if (joins_) result = retimed({topology_, result.sends}, topology_, demand_, rules_.concurrency);
  canonicalise(result);
  return result;
}

}  // namespace

Schedule list_schedule(const Topology& topology, const HopTable& hops, const Demand& demand,
                       const Deliveries& deliveries, const ListRules& rules, const PartialSchedule* partial) {
  ListScheduler scheduler(topology, hops, demand, deliveries, rules, partial ? partial->time_us : 0);
  if (partial) scheduler.resume(*partial);
  return *scheduler.run(nullptr);
}

std::optional<Schedule> list_schedule(const Topology& topology, const HopTable& hops, const Demand& demand,
                                      const Deliveries& deliveries, const ListRules& rules,
                                      const Deadline& deadline) {
  return ListScheduler(topology, hops, demand, deliveries, rules, 0).run(&deadline);
}

}  // namespace rondo
