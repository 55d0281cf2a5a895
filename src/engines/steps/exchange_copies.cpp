#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

#include "../trees/switch_trees.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/engines/exchange.hpp"
#include "task_scheduler.hpp"
#include "times_apart.hpp"

namespace rondo {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();
constexpr double kSameTime = 1e-9;  ///< us
/// Arrivals that are planned; beyond, of many GPUs in many chunks, what is gained is not worth the time.
constexpr std::size_t kMostEnds = 60'000;
/// At each transfer on average: far more than where they do not wait for each other in turn.
constexpr std::size_t kMostLooks = 1000;

/// What is sent first: what arrives first; or what starts first, and of that what goes far, so that it leaves
/// before its sender hears from near by.
enum class Order { by_arrival, by_start };

/// A transfer to several GPUs.
struct Cast {
  struct End {
    std::size_t link;  ///< of the hop
    GpuId gpu;
    double after_us;  ///< from the start to the arrival
  };
  int chunk;
  GpuId from;
  Hop hop;
  std::vector<End> ends = {};
  double first_after_us = kNotYet;
};

struct Offer {
  double us;      ///< of its start or first arrival, no earlier than this
  double far_us;  ///< before others, until the first arrival
  int chunk;
  std::size_t cast;
  friend bool operator<(const Offer& a, const Offer& b) {
    return std::tie(b.us, a.far_us, b.chunk, b.cast) < std::tie(a.us, b.far_us, a.chunk, a.cast);
  }
};

/// Sums that GPUs have go to others over switches that copy, step by step.
class CopiedSums {
 public:
  CopiedSums(const ExchangeProblem& problem, Order order)
      : problem_(problem),
        order_(order),
        topology_(problem.topology),
        timetable_(problem.topology, problem.concurrency),
        marks_(problem.topology),
        trees_(problem.topology),
        links_to_(problem.topology.num_gpus()),
        held_(problem.demand.num_chunks() * problem.topology.num_gpus()) {
    for (std::size_t i = 0; i < held_.size(); ++i)
      held_[i].ready_us = problem.demand.ready_us(ChunkId(i / topology_.num_gpus()));
  }

  int num_chunks() const { return static_cast<int>(problem_.demand.num_chunks()); }
  const std::vector<GpuId>& members(int chunk) const {
    return problem_.members[index(chunk / problem_.chunks_a_place) % problem_.members.size()];
  }

  /// What `group` has goes to `listeners`, to each from who is nearest; of those equally near another one for
  /// each chunk. Returns whether switches lead to all, and there are not too many.
  bool plan(int chunk, std::span<const GpuId> group, std::vector<GpuId> listeners) {
    for (std::size_t turn = 0; turn < group.size() && !listeners.empty(); ++turn) {
      const GpuId from = group[(index(chunk) + turn) % group.size()];
      std::map<int, std::vector<GpuId>> by_links;  // farther ones are reached later
      std::erase_if(listeners, [&](GpuId to) {
        const int links = links_between(from, to);
        const auto is_nearer = [&](GpuId other) {
          const int of_other = links_between(other, to);
          return of_other != SwitchTrees::kNotReached && of_other < links;
        };
        if (links == SwitchTrees::kNotReached || std::ranges::any_of(group, is_nearer)) return false;
        by_links[links].push_back(to);
        return true;
      });
      for (const auto& [links, to] : by_links) {
        for (const LinkTree& tree : trees_.trees_of(from, to, problem_.demand.bytes(ChunkId{chunk})))
          add_cast({chunk, from, make_hop(topology_, tree.links, tree.parents)});
      }
    }
    return listeners.empty() && num_ends_ <= kMostEnds;
  }

  /// What has been planned, one after another as early as links allow. Returns whether none would have to
  /// carry what its sender has added before.
  bool send_planned() {
    for (Held& held : held_) {
      held.first_us = kNotYet;
      held.last_us = held.ready_us;
    }
    if (!send_casts()) return false;
    for (Held& held : held_) held.ready_us = held.last_us;
    return true;
  }

  /// What has been planned last, from `first` on, takes the place of what its receivers have.
  void comes_first(std::size_t first) {
    for (std::size_t i = first; i < casts_.size(); ++i) {
      for (const Cast::End& end : casts_[i].ends) {
        held(casts_[i].chunk, end.gpu).own_cast = i;
        held(casts_[i].chunk, end.gpu).own_after_us = end.after_us;
      }
    }
  }
  std::size_t num_planned() const { return casts_.size(); }
  void plan_anew() { casts_.clear(); }

  /// Returns whether what has to come first does.
  bool begin_with_copies() {
    for (const Held& held : held_) {
      if (held.own_cast == kNone) continue;
      if (held.first_cast != held.own_cast) return false;
      schedule_.sends[held.first_send].op = SendOp::copy;
    }
    return true;
  }

  Schedule schedule() {
    for (const Held& held : held_) schedule_.finish_us = std::max(schedule_.finish_us, held.last_us);
    canonicalise(schedule_);
    return std::move(schedule_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// A chunk at a GPU.
  struct Held {
    double ready_us = 0;        ///< all of the step before is there
    double first_us = kNotYet;  ///< something else arrives for the first time
    std::size_t first_send = kNone;
    std::size_t first_cast = kNone;
    std::size_t own_cast = kNone;  ///< that has to come first
    double own_after_us = 0;       ///< from its start to its arrival
    double last_us = 0;            ///< the last arrival
    double last_start_us = -1;     ///< of what it sends
  };

  const Held& held(int chunk, GpuId gpu) const {
    return held_[index(chunk) * topology_.num_gpus() + gpu.index()];
  }
  Held& held(int chunk, GpuId gpu) { return held_[index(chunk) * topology_.num_gpus() + gpu.index()]; }
  double bytes(const Cast& cast) const { return problem_.demand.bytes(ChunkId{cast.chunk}); }

  int links_between(GpuId from, GpuId to) {
    std::vector<int>& links = links_to_[from.index()];
    if (links.empty()) links = trees_.links_to_gpus(from);
    return links[to.index()];
  }

  void add_cast(Cast cast) {
    for (std::size_t i = 0; i < cast.hop.links.size(); ++i) {
      const HopLink& part = cast.hop.links[i];
      const Link& link = topology_.link(part.link);
      if (!topology_.is_gpu(link.dst)) continue;
      const double us = part.offset_us_of(bytes(cast)) + part.occupied_us(bytes(cast)) + link.latency_us;
      cast.ends.push_back({i, topology_.gpu_of(link.dst), us});
      cast.first_after_us = std::min(cast.first_after_us, us);
    }
    num_ends_ += cast.ends.size();
    casts_.push_back(std::move(cast));
  }

  /// Of what has to come first at a GPU; no earlier than this.
  double own_arrival_us(const Held& to) const {
    if (to.first_cast == to.own_cast) return to.first_us;
    return to.own_cast < start_us_.size() ? start_us_[to.own_cast] + to.own_after_us : 0;
  }

  /// As things stand. It arrives after what its receivers have sent without it, and after what it is added
  /// to.
  double start_of(std::size_t number) const {
    const Cast& cast = casts_[number];
    double not_before_us = held(cast.chunk, cast.from).ready_us;
    if (order_ == Order::by_start) not_before_us = std::max(not_before_us, rivals_start_us(cast));
    for (const auto& [link, gpu, after_us] : cast.ends) {
      const Held& to = held(cast.chunk, gpu);
      double after = std::max(to.last_start_us, to.ready_us);
      if (to.own_cast != kNone && to.own_cast != number) after = std::max(after, own_arrival_us(to));
      not_before_us = std::max(not_before_us, after + apart_us(after) - after_us);
    }
    return timetable_.earliest_start(cast.hop, bytes(cast), not_before_us);
  }

  Offer offer_of(std::size_t i) const {
    const double far_us = casts_[i].first_after_us;
    return {order_ == Order::by_start ? start_us_[i] : start_us_[i] + far_us,
            order_ == Order::by_start ? far_us : 0, casts_[i].chunk, i};
  }

  bool send_casts() {
    start_us_.clear();
    waiting_.clear();
    std::priority_queue<Offer> offers;
    for (std::size_t i = 0; i < casts_.size(); ++i) {
      start_us_.push_back(start_of(i));
      waiting_[{casts_[i].chunk, casts_[i].from}].push_back(i);
      offers.push(offer_of(i));
    }
    for (std::size_t looks = 0; !offers.empty(); ++looks) {
      if (looks > kMostLooks * casts_.size()) return false;
      const std::size_t i = offers.top().cast;
      offers.pop();
      const Cast& cast = casts_[i];
      const double known_us = start_us_[i];
      const double start = start_us_[i] = start_of(i);
      const bool is_pure = start + apart_us(start) < held(cast.chunk, cast.from).first_us;
      if (!is_pure || start == kNotYet) return false;
      if (start > known_us + kSameTime) {
        offers.push(offer_of(i));
        continue;
      }
      send(i, start);
      std::erase(waiting_[{cast.chunk, cast.from}], i);
    }
    return true;
  }

  /// By start: not before what goes as far, or farther, and waits at those that it goes to.
  double rivals_start_us(const Cast& cast) const {
    double us = 0;
    for (const Cast::End& end : cast.ends) {
      const auto rivals = waiting_.find({cast.chunk, end.gpu});
      if (rivals == waiting_.end()) continue;
      for (const std::size_t i : rivals->second) {
        if (casts_[i].first_after_us >= cast.first_after_us) us = std::max(us, start_us_[i]);
      }
    }
    return us;
  }

  void send(std::size_t number, double start) {
    const Cast& cast = casts_[number];
    const std::size_t before = schedule_.sends.size();
    timetable_.reserve(cast.hop, ChunkId{cast.chunk}, bytes(cast), start, schedule_.sends);
    marks_.mark(cast.hop, SendOp::reduce, std::span(schedule_.sends).subspan(before));
    Held& from = held(cast.chunk, cast.from);
    from.last_start_us = std::max(from.last_start_us, start);
    for (const auto& [link, gpu, after_us] : cast.ends) {
      Held& to = held(cast.chunk, gpu);
      if (start + after_us < to.first_us) {
        to.first_us = start + after_us;
        to.first_send = before + link;
        to.first_cast = number;
      }
      to.last_us = std::max(to.last_us, start + after_us);
    }
  }

  const ExchangeProblem& problem_;
  Order order_;
  const Topology& topology_;
  LinkTimetable timetable_;
  SumMarks marks_;
  SwitchTrees trees_;
  std::vector<std::vector<int>> links_to_;  ///< per GPU that has been asked about, to each
  std::vector<Held> held_;
  std::vector<Cast> casts_ = {};
  std::size_t num_ends_ = 0;
  std::vector<double> start_us_ = {};  ///< per cast: no earlier than this
  std::map<std::pair<int, GpuId>, std::vector<std::size_t>> waiting_ = {};  ///< by chunk and sender
  Schedule schedule_ = {};
};

std::vector<GpuId> without(std::span<const GpuId> gpus, std::span<const GpuId> some) {
  std::vector<GpuId> others;
  std::ranges::copy_if(gpus, std::back_inserter(others),
                       [&](GpuId g) { return std::ranges::find(some, g) == some.end(); });
  return others;
}

std::optional<Schedule> exchanged(const ExchangeProblem& problem, const std::vector<int>& radices,
                                  Order order) {
  CopiedSums sums(problem, order);
  std::size_t size = 1;
  for (const int radix : radices) {
    const std::size_t together = size * index(radix);
    for (int chunk = 0; chunk < sums.num_chunks(); ++chunk) {
      const std::span<const GpuId> members(sums.members(chunk));
      for (std::size_t first = 0; first < members.size(); first += size) {
        const auto group = members.subspan(first, size);
        const auto all = members.subspan(first / together * together, together);
        if (!sums.plan(chunk, group, without(all, group))) return std::nullopt;
      }
    }
    if (!sums.send_planned()) return std::nullopt;
    sums.plan_anew();
    size = together;
  }
  return sums.schedule();
}

std::optional<Schedule> told(const ExchangeProblem& problem, const std::vector<std::vector<GpuId>>& groups,
                             Order order) {
  CopiedSums sums(problem, order);
  std::vector<GpuId> all;
  for (const std::vector<GpuId>& group : groups) all.insert(all.end(), group.begin(), group.end());
  for (int chunk = 0; chunk < sums.num_chunks(); ++chunk) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::span adder(&sums.members(chunk)[g], 1);
      const std::size_t first = sums.num_planned();
      if (!sums.plan(chunk, adder, without(groups[g], adder))) return std::nullopt;
      sums.comes_first(first);
      if (!sums.plan(chunk, adder, without(all, groups[g]))) return std::nullopt;
    }
  }
  if (!sums.send_planned() || !sums.begin_with_copies()) return std::nullopt;
  return sums.schedule();
}

}  // namespace

bool can_exchange_by_copies(const ExchangeProblem& problem) {
  const Topology& topology = problem.topology;
  const auto stores = [](const Node& node) { return node.stores(); };
  const auto copies = [](const Node& node) { return node.kind == NodeKind::switch_ && node.multicast; };
  return !problem.in_pairs && !topology.has_bandwidth_steps() &&
         std::ranges::any_of(topology.nodes(), copies) && std::ranges::none_of(topology.nodes(), stores);
}

std::optional<Schedule> exchange_by_copies(const ExchangeProblem& problem, const std::vector<int>& radices) {
  if (!can_exchange_by_copies(problem)) return std::nullopt;
  std::optional<Schedule> schedule = exchanged(problem, radices, Order::by_arrival);
  return schedule ? schedule : exchanged(problem, radices, Order::by_start);
}

std::optional<Schedule> tell_by_copies(const ExchangeProblem& problem,
                                       const std::vector<std::vector<GpuId>>& groups) {
  if (!can_exchange_by_copies(problem)) return std::nullopt;
  std::optional<Schedule> schedule = told(problem, groups, Order::by_arrival);
  return schedule ? schedule : told(problem, groups, Order::by_start);
}

}  // namespace rondo
