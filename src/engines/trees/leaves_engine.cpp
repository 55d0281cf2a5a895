#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/insertion_timetable.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/engines/plain_allgather.hpp"
#include "rondo/model/deadline.hpp"
#include "switch_trees.hpp"

/// AllGather where switches join GPUs in leaves, as in fat trees. Each leaf sends to every other in turn, so
/// that the links of all GPUs are busy all the time.
namespace rondo {
namespace {

/// Beyond, schedules fill gigabytes.
constexpr std::size_t kMostGpus = 4096;
constexpr std::size_t kMostGpusOfRelays = 1024;  ///< a transfer for each pair
constexpr int kMostCounts = 128;                 ///< numbers of chunks looked at
constexpr double kSameTurns = 1e-9;              ///< relative difference by rounding
constexpr double kLeastTurns = 2;                ///< of a wait that is worth a number of chunks of its own

using Leaves = std::vector<std::vector<GpuId>>;

/// GPUs behind the same switches.
Leaves leaves_of(const Topology& topology) {
  std::map<std::vector<NodeId>, std::vector<GpuId>> behind;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    std::vector<NodeId> switches;
    for (const LinkId l : topology.in_links(topology.node_of(GpuId{g}))) {
      if (!topology.is_gpu(topology.link(l).src)) switches.push_back(topology.link(l).src);
    }
    std::ranges::sort(switches);
    behind[switches].emplace_back(g);
  }
  Leaves leaves;
  for (auto& [switches, gpus] : behind) leaves.push_back(std::move(gpus));
  return leaves;
}

using Through = SwitchTrees::Through;

bool reach_all(const Topology& topology, Through through) {
  SwitchTrees trees(topology, through);
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    if (std::ranges::count(trees.links_to_gpus(GpuId{g}), SwitchTrees::kNotReached) > 0) return false;
  }
  return true;
}

bool are_even(const Leaves& leaves) {
  return std::ranges::all_of(
      leaves, [&](const std::vector<GpuId>& leaf) { return leaf.size() == leaves.front().size(); });
}

/// Switches that copy where these join all GPUs; nothing where switches do not, or where without copies
/// leaves have not as many GPUs each.
std::optional<Through> way_of(const Topology& topology, const Leaves& leaves) {
  if (reach_all(topology, Through::copying)) return Through::copying;
  // GPUs pass on what they would need room for.
  if (topology.limits_relay_memory()) return std::nullopt;
  if (!are_even(leaves) || !reach_all(topology, Through::all)) return std::nullopt;
  return Through::all;
}

/// How GPUs of a leaf take turns in what they pass on.
struct Turns {
  bool apart;         ///< few of them send to another leaf at a time
  bool whole_chunks;  ///< all turns of a chunk before those of the next one
};
constexpr std::array<Turns, 3> kAllTurns{{{true, true}, {true, false}, {false, true}}};

/// Places each transfer as early as the links allow.
class LeafScheduler {
 public:
  LeafScheduler(const Topology& topology, const Demand& demand, const Leaves& leaves, Through through,
                int concurrency, const Deadline& deadline)
      : topology_(topology),
        demand_(demand),
        leaves_(leaves),
        deadline_(deadline),
        trees_(topology, through),
        timetable_(topology, InsertionTimetable::Reading::forwards, concurrency),
        chunks_of_(topology.num_gpus()) {
    for (std::size_t c = 0; c < demand.num_chunks(); ++c)
      chunks_of_[demand.origin(ChunkId{c}).index()].emplace_back(c);
  }

  /// Nothing where the deadline came first.
  std::optional<Schedule> by_copies() {
    send_copies();
    return finished();
  }
  std::optional<Schedule> by_relays(const Turns& turns) {
    send_relays(turns);
    return finished();
  }

 private:
  std::optional<Schedule> finished() {
    if (is_late_) return std::nullopt;
    for (const Send& s : schedule_.sends) schedule_.finish_us = std::max(schedule_.finish_us, s.arrival_us);
    canonicalise(schedule_);
    return std::move(schedule_);
  }

  std::size_t chunks_each() const { return chunks_of_.front().size(); }
  std::size_t most_in_a_leaf() const {
    return std::ranges::max(leaves_, {}, &std::vector<GpuId>::size).size();
  }

  /// In round r leaf a sends to leaf a + r, one GPU after another to all there. What stays within a leaf
  /// comes last and takes the time that is left: also at the beginning, where nothing has come from other
  /// leaves, as they are farther. All GPUs have some of it left, because none sends its second chunk before
  /// each has sent its first.
  void send_copies() {
    const std::size_t most = most_in_a_leaf();
    for (std::size_t i = 0; i < chunks_each(); ++i) {
      for (std::size_t r = 1; r < leaves_.size(); ++r) {
        for (std::size_t turn = 0; turn < most; ++turn) {
          for (std::size_t a = 0; a < leaves_.size(); ++a) {
            if (turn >= leaves_[a].size()) continue;
            const GpuId from = leaves_[a][turn];
            send(from, leaves_[(a + r) % leaves_.size()], chunk(from, i), 0);
          }
        }
      }
    }
    for (std::size_t i = 0; i < chunks_each(); ++i) {
      for (const std::vector<GpuId>& leaf : leaves_) {
        for (std::size_t step = 1; step < leaf.size(); ++step) {
          for (std::size_t j = 0; j < leaf.size(); ++j)
            send(leaf[j], {&leaf[(j + step) % leaf.size()], 1}, chunk(leaf[j], i), 0);
        }
      }
    }
  }

  /// Leaves have n GPUs each. In each round, of n turns, GPU j of a leaf sends its own data to GPU j of
  /// another leaf, and to all others of its leaf what has come to it in the round before, in the first round
  /// its own. In turn t it sends to GPU t - j of its leaf (t + j, unless they send apart), or where that is
  /// itself to the other leaf: so each GPU sends and receives once a turn.
  void send_relays(const Turns& turns) {
    const std::size_t n = most_in_a_leaf();
    std::vector<std::vector<double>> there_us(topology_.num_gpus(), std::vector<double>(chunks_each(), 0));
    for (std::size_t r = 0; r < leaves_.size(); ++r) {
      std::vector<std::vector<double>> next_us = there_us;
      for (std::size_t k = 0; k < n * chunks_each(); ++k) {
        const std::size_t t = turns.whole_chunks ? k % n : k / chunks_each();
        const std::size_t i = turns.whole_chunks ? k / n : k % chunks_each();
        for (std::size_t a = 0; a < leaves_.size(); ++a) {
          const std::vector<GpuId>& origins = leaves_[(a + leaves_.size() - r) % leaves_.size()];
          for (std::size_t j = 0; j < n; ++j) {
            const GpuId from = leaves_[a][j];
            const std::size_t to = (turns.apart ? t + n - j : t + j) % n;
            if (to != j) {
              send(from, {&leaves_[a][to], 1}, chunk(origins[j], i), there_us[from.index()][i]);
            } else if (r + 1 < leaves_.size()) {
              const GpuId other = leaves_[(a + r + 1) % leaves_.size()][j];
              next_us[other.index()][i] = send(from, {&other, 1}, chunk(from, i), 0);
            }
          }
        }
      }
      there_us = std::move(next_us);
    }
  }

  ChunkId chunk(GpuId origin, std::size_t i) const { return chunks_of_[origin.index()][i]; }

  /// Returns when the last one has it.
  double send(GpuId from, std::span<const GpuId> to, ChunkId chunk, double not_before_us) {
    is_late_ = is_late_ || deadline_.is_over();
    if (is_late_) return not_before_us;
    const double bytes = demand_.bytes(chunk);
    double there_us = not_before_us;
    for (const LinkTree& tree : trees_.trees_of(from, to, bytes)) {
      const Hop hop = make_hop(topology_, tree.links, tree.parents);
      const double start_us = timetable_.earliest_start(hop, bytes, not_before_us);
      if (!std::isfinite(start_us)) {
        throw Error(ExitCode::unavailable,
                    fmt::format("engine leaves finds no way from GPU {} to GPU {} that stays up; use another "
                                "engine",
                                from.value, to.front().value));
      }
      timetable_.reserve(hop, bytes, start_us);
      append_sends(topology_, hop, chunk, bytes, start_us, schedule_.sends);
      there_us = std::max(there_us, start_us + timetable_.duration_us(hop, bytes, start_us));
    }
    return there_us;
  }

  const Topology& topology_;
  const Demand& demand_;
  const Leaves& leaves_;
  const Deadline& deadline_;
  bool is_late_ = false;
  SwitchTrees trees_;
  InsertionTimetable timetable_;
  std::vector<std::vector<ChunkId>> chunks_of_;  ///< by origin
  Schedule schedule_ = {};
};

/// The earliest schedule of those that are done in time.
std::optional<Schedule> by_leaves(const Topology& topology, const Demand& demand, const Leaves& leaves,
                                  Through way, int concurrency, const Deadline& deadline) {
  if (way == Through::copying)
    return LeafScheduler(topology, demand, leaves, way, concurrency, deadline).by_copies();
  std::optional<Schedule> best;
  for (const Turns& turns : kAllTurns) {
    std::optional<Schedule> next =
        LeafScheduler(topology, demand, leaves, way, concurrency, deadline).by_relays(turns);
    if (next && (!best || next->finish_us < best->finish_us)) best = std::move(next);
  }
  return best;
}

PreparedEngine prepare_leaves(const Instance& instance, const EngineOptions&, const Toolbox&) {
  if (!is_plain_allgather(instance))
    throw Error(ExitCode::unavailable, "engine leaves does plain AllGather; use --engine auto");
  const auto topology = instance.topology;
  Leaves leaves = leaves_of(*topology);
  const std::optional<Through> way = way_of(*topology, leaves);
  if (!way) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("engine leaves needs switches that join all GPUs of '{}', and where they do not copy "
                    "as many GPUs behind each; use --engine auto",
                    topology->name()));
  }
  return
      [topology, leaves = std::move(leaves), way = *way](const Demand& demand, const EngineOptions& options) {
        EngineResult result;
        const Deadline deadline(options.limits);
        result.schedule = by_leaves(*topology, demand, leaves, way, options.concurrency, deadline);
        if (!result.schedule) result.limits_hit.push_back(deadline.ended_by());
        return result;
      };
}

/// Whether there are several leaves of several GPUs.
bool has_leaves(const Instance& instance) {
  const Topology& topology = *instance.topology;
  if (!is_plain_allgather(instance) || topology.num_gpus() > kMostGpus) return false;
  const Leaves leaves = leaves_of(topology);
  if (leaves.size() < 2 || leaves.size() == topology.num_gpus()) return false;
  const std::optional<Through> way = way_of(topology, leaves);
  return way && (*way == Through::copying || topology.num_gpus() <= kMostGpusOfRelays);
}

/// By how much turns of relays wait: what comes from another leaf is later than what stays within one, by so
/// many turns, and has its links to itself in a whole number of them. Infinity where these are next to none.
double wait_of_turns(const Hop& within, const Hop& between, double bytes) {
  const HopLink& last = within.links.back();
  const double late_us = between.links.back().offset_us_of(bytes) - last.offset_us_of(bytes);
  const double turns = late_us / last.occupied_us(bytes);
  const double whole = std::floor(turns * (1 + kSameTurns));
  if (whole < kLeastTurns) return kInfinity;
  return turns < whole * (1 + kSameTurns) ? 1 : turns / whole;
}

/// The numbers of chunks between powers of two in which relays wait least: those of another part, too.
std::vector<int> find_counts(const Instance& instance, bool is_part) {
  const Topology& topology = *instance.topology;
  if (!has_leaves(instance)) return {};
  const Leaves leaves = leaves_of(topology);
  const bool are_copied = way_of(topology, leaves) == Through::copying;
  if (!are_even(leaves) || (are_copied && !is_part)) return {};
  SwitchTrees trees(topology, Through::all);
  const double bytes = instance.demand.contributions().front().bytes;
  const auto hop_to = [&](GpuId to) {
    const LinkTree tree = trees.trees_of(leaves[0][0], {&to, 1}, bytes).front();
    return make_hop(topology, tree.links, tree.parents);
  };
  const Hop within = hop_to(leaves[0][1]);
  const Hop between = hop_to(leaves[1][0]);
  const auto wait = [&](int chunks) { return wait_of_turns(within, between, bytes / chunks); };
  std::vector<int> counts;
  for (int power = 2; power < kMostCounts; power *= 2) {
    int best = power;
    for (int chunks = power + 1; chunks <= 2 * power; ++chunks) {
      if (wait(chunks) < wait(best)) best = chunks;
    }
    if (best > power && best < 2 * power) counts.push_back(best);
  }
  return counts;
}

}  // namespace

EngineInfo leaves_engine() {
  return {.name = "leaves",
          .help =
              "AllGather where switches join GPUs in leaves, as in fat trees: each leaf sends to each other "
              "in turn, to all GPUs there at once where switches copy, else to one that passes it on",
          .applicable = [](const Instance& instance, const EngineOptions&) { return has_leaves(instance); },
          .is_quick = true,
          .finds_counts = find_counts,
          .takes_seeds = false,
          .traits = kContinuousTime,
          .prepare = prepare_leaves};
}

}  // namespace rondo
