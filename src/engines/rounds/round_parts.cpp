#include "round_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "rondo/core/epoch_grid.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"

namespace rondo {
namespace {

/// Epochs that cover a time of the continuous schedule, up to its rounding errors.
int whole_epochs(double us, double tau_us) {
  return epochs_covering(us, tau_us, 1e-6);
}

/// Builds one part's problem. Times of links count from the beginning of the round.
class TaskBuilder {
 public:
  TaskBuilder(const Topology& topology, const HopTable& hops, const Demand& demand,
              const CommittedSchedule& committed, const Decomposition& decomposition, const Part& part,
              const RoundWindow& window, const std::vector<double>& relay_us, const PartOptions& options)
      : topology_(topology),
        hops_(hops),
        demand_(demand),
        committed_(committed),
        decomposition_(decomposition),
        part_(part),
        window_(window),
        relay_us_(relay_us),
        options_(options),
        bytes_(demand.bytes(ChunkId{0})),
        free_us_(topology.num_links()) {
    for (std::size_t l = 0; l < free_us_.size(); ++l)
      free_us_[l] = std::max(0.0, committed.link_free_us(LinkId{l}) - window.begin_us);
  }

  PartTask build(const std::vector<Move>& plan, const std::vector<PlacedMove>& decided) {
    take_nodes_and_paths();
    for (const PlacedMove& move : decided) occupy(move);
    place(plan, decided);
    choose_chunks(decided);
    if (task_.chunks.empty() && task_.refusal.empty()) task_.refusal = "nothing to decide";
    block_links();
    return std::move(task_);
  }

 private:
  bool carries(ChunkId c) const {
    return part_.shares == 1 || decomposition_.share_of_chunk[c.index()] == part_.share;
  }

  void take_nodes_and_paths() {
    node_of_gpu_.assign(topology_.num_gpus(), -1);
    for (std::size_t g = 0; g < topology_.num_gpus(); ++g) {
      if (part_.where == Part::Where::inside_cluster && decomposition_.cluster_of_gpu[g] != part_.cluster)
        continue;
      node_of_gpu_[g] = static_cast<int>(gpus_.size());
      gpus_.push_back(GpuId{g});
    }
    RoundProblem& problem = task_.problem;
    problem.tau_us = window_.tau_us;
    problem.num_epochs = window_.epochs;
    problem.num_nodes = static_cast<int>(gpus_.size());
    problem.gamma = options_.gamma;
    path_of_hop_.assign(hops_.hops().size(), -1);
    link_of_.assign(topology_.num_links(), -1);
    for (const GpuId g : gpus_) {
      for (const int h : hops_.out_of(g)) {
        const Hop& hop = hops_.hop(h);
        if (!decides(decomposition_, part_, hop.src, hop.dst)) continue;
        RoundProblem::Path path{
            node(hop.src), node(hop.dst), landing_epochs(hop, bytes_, window_.tau_us), {}};
        for (const HopLink& link : hop.links) {
          int& local = link_of_[link.link.index()];
          if (local < 0) {
            local = static_cast<int>(links_.size());
            links_.push_back(link.link);
          }
          path.links.push_back({local, link.offset_us_of(bytes_), link.occupied_us(bytes_)});
        }
        deal_slots(hop, path);
        path_of_hop_[index(h)] = static_cast<int>(problem.paths.size());
        problem.paths.push_back(std::move(path));
        task_.hops.push_back(h);
      }
    }
    problem.num_links = static_cast<int>(links_.size());
    for (const GpuId from : gpus_) {
      for (const GpuId to : gpus_) {
        problem.distance.push_back(relay_us_[from.index() * topology_.num_gpus() + to.index()] /
                                   window_.tau_us);
      }
    }
    if (part_.where == Part::Where::between_clusters) {
      for (const GpuId g : gpus_) problem.group.push_back(decomposition_.cluster_of_gpu[g.index()]);
    }
  }
  /// Gives the part every `shares`-th slot of the path. A slot lasts as long as a chunk takes on the hop's
  /// slowest link; slots are numbered from the beginning of the schedule, so that shares alternate across
  /// rounds as within them.
  void deal_slots(const Hop& hop, RoundProblem::Path& path) const {
    if (part_.shares == 1) return;
    double longest_us = 0;
    for (const HopLink& link : hop.links) longest_us = std::max(longest_us, link.occupied_us(bytes_));
    const int slot = std::max(1, whole_epochs(longest_us, window_.tau_us));
    path.period = slot * part_.shares;
    const std::int64_t base = window_.round * window_.epochs;
    path.phase = static_cast<int>(((slot * part_.share - base) % path.period + path.period) % path.period);
  }
  int node(GpuId g) const { return node_of_gpu_[g.index()]; }

  void occupy(const PlacedMove& move) {
    for (const HopLink& link : hops_.hop(move.hop).links) {
      const double begin = move.epoch * window_.tau_us + link.offset_us_of(bytes_);
      taken_.push_back({link.link, begin, begin + link.occupied_us(bytes_)});
      free_us_[link.link.index()] = std::max(free_us_[link.link.index()], taken_.back().end_us);
    }
  }

  /// The epoch from which the GPU can send the chunk by what is committed; kNeverEpoch where it never can.
  int held_epoch(ChunkId c, GpuId g) const {
    const double from_us = committed_.held_from_us(c, g);
    if (!std::isfinite(from_us)) return kNeverEpoch;
    return std::max(0, whole_epochs(from_us - window_.begin_us, window_.tau_us));
  }

  /// The plan on whole epochs: every move as early as links and its chunk allow.
  void place(const std::vector<Move>& plan, const std::vector<PlacedMove>& decided) {
    std::map<std::pair<ChunkId, GpuId>, int> arrives;
    for (const PlacedMove& move : decided) {
      const Hop& hop = hops_.hop(move.hop);
      arrives[{move.chunk, hop.dst}] = move.epoch + landing_epochs(hop, bytes_, window_.tau_us);
    }
    std::vector<double> free_us = free_us_;
    for (const Move& move : plan) {
      const Hop& hop = hops_.hop(move.hop);
      if (path_of_hop_[index(move.hop)] < 0 || !carries(move.chunk)) continue;
      int epoch = held_epoch(move.chunk, hop.src);
      if (const auto found = arrives.find({move.chunk, hop.src}); found != arrives.end())
        epoch = std::min(epoch, found->second);
      if (epoch >= kNeverEpoch) continue;  // in the plan another part brings it to the sender
      for (const HopLink& link : hop.links) {
        const double offset = link.offset_us_of(bytes_);
        epoch = std::max(epoch, whole_epochs(free_us[link.link.index()] - offset, window_.tau_us));
      }
      const RoundProblem::Path& path = task_.problem.paths[index(path_of_hop_[index(move.hop)])];
      while (epoch % path.period != path.phase) ++epoch;
      for (const HopLink& link : hop.links) {
        const double offset = link.offset_us_of(bytes_);
        free_us[link.link.index()] = epoch * window_.tau_us + offset + link.occupied_us(bytes_);
      }
      arrives[{move.chunk, hop.dst}] = epoch + landing_epochs(hop, bytes_, window_.tau_us);
      placed_.push_back({move.chunk, move.hop, epoch});
    }
  }

  /// Takes the chunks that the plan moves first, then others at random, until the model has the size asked
  /// for.
  void choose_chunks(const std::vector<PlacedMove>& decided) {
    std::map<ChunkId, std::map<GpuId, int>> arriving;
    for (const PlacedMove& move : decided) {
      const GpuId dst = hops_.hop(move.hop).dst;
      if (node(dst) < 0) continue;
      arriving[move.chunk][dst] = move.epoch + landing_epochs(hops_.hop(move.hop), bytes_, window_.tau_us);
    }
    std::vector<char> in_plan(demand_.num_chunks(), 0);
    for (const PlacedMove& move : placed_) {
      if (move.epoch < window_.epochs) in_plan[move.chunk.index()] = 1;
    }
    std::vector<ChunkId> order;
    for (std::size_t i = 0; i < demand_.num_chunks(); ++i) {
      if (carries(ChunkId{i})) order.push_back(ChunkId{i});
    }
    Random random(options_.seed * 1'000'003 + static_cast<std::uint64_t>(window_.round));
    random.shuffle(std::span(order));
    std::stable_sort(order.begin(), order.end(),
                     [&](ChunkId a, ChunkId b) { return in_plan[a.index()] > in_plan[b.index()]; });

    struct Chosen {
      ChunkId id;
      RoundProblem::Chunk chunk;
    };
    std::vector<Chosen> chosen;
    std::size_t columns = 0;
    for (const ChunkId c : order) {
      RoundProblem::Chunk chunk = local_chunk(c, arriving);
      if (chunk.unmet.empty()) continue;
      const std::size_t more = estimated_columns(chunk);
      if (more == 0) continue;
      if (columns + more > options_.max_columns) {
        if (chosen.empty()) {
          task_.refusal =
              fmt::format("one chunk alone has {} columns, more than {}", more, options_.max_columns);
          break;
        }
        if (!in_plan[c.index()]) break;
        continue;
      }
      columns += more;
      chosen.push_back({c, std::move(chunk)});
    }
    // The order does not depend on the numbers of chunks, so that symmetric parts have equal problems.
    std::stable_sort(chosen.begin(), chosen.end(), [](const Chosen& a, const Chosen& b) {
      const auto key = [](const RoundProblem::Chunk& chunk) {
        std::vector<std::pair<int, int>> holders;
        for (const auto& h : chunk.holders) holders.emplace_back(h.node, h.epoch);
        return std::pair(std::move(holders), chunk.unmet);
      };
      return key(a.chunk) < key(b.chunk);
    });
    std::map<ChunkId, int> local;
    for (Chosen& choice : chosen) {
      local[choice.id] = static_cast<int>(task_.chunks.size());
      task_.chunks.push_back(choice.id);
      task_.problem.chunks.push_back(std::move(choice.chunk));
    }
    for (const PlacedMove& move : placed_) {
      const auto found = local.find(move.chunk);
      if (found != local.end() && move.epoch < window_.epochs) {
        task_.start.push_back({found->second, path_of_hop_[index(move.hop)], move.epoch});
      } else {
        task_.kept.push_back(move);
        if (move.epoch < window_.epochs) occupy(move);
      }
    }
  }

  RoundProblem::Chunk local_chunk(ChunkId c, const std::map<ChunkId, std::map<GpuId, int>>& arriving) const {
    RoundProblem::Chunk chunk;
    const auto more = arriving.find(c);
    std::vector<char> has(gpus_.size(), 0);
    for (std::size_t n = 0; n < gpus_.size(); ++n) {
      int epoch = held_epoch(c, gpus_[n]);
      if (more != arriving.end()) {
        if (const auto found = more->second.find(gpus_[n]); found != more->second.end())
          epoch = std::min(epoch, found->second);
      }
      if (epoch >= kNeverEpoch) continue;
      chunk.holders.push_back({static_cast<int>(n), epoch});
      has[n] = 1;
    }
    if (chunk.holders.empty()) return chunk;
    for (const GpuId d : demand_.destinations(c)) {
      if (node(d) >= 0 && !has[index(node(d))]) chunk.unmet.push_back(node(d));
    }
    return chunk;
  }

  /// An estimate: paths into nodes without the chunk, times the epochs from the earliest on in which their
  /// source can hold it.
  std::size_t estimated_columns(const RoundProblem::Chunk& chunk) const {
    const std::vector<int> at = earliest_epochs(task_.problem, chunk);
    std::vector<char> holds(gpus_.size(), 0);
    for (const auto& holder : chunk.holders) holds[index(holder.node)] = 1;
    std::size_t columns = 0;
    for (const auto& path : task_.problem.paths) {
      if (holds[index(path.dst)] || at[index(path.src)] >= window_.epochs) continue;
      columns += index(window_.epochs - at[index(path.src)]);
    }
    return columns;
  }

  void block_links() {
    std::vector<RoundProblem::Blocked>& blocked = task_.problem.blocked;
    for (std::size_t l = 0; l < links_.size(); ++l) {
      const double until_us = committed_.link_free_us(links_[l]) - window_.begin_us;
      if (until_us > 1e-6 * window_.tau_us)
        blocked.push_back({static_cast<int>(l), -window_.tau_us, until_us});
    }
    const double horizon_us = window_.epochs * window_.tau_us;
    for (const Taken& taken : taken_) {
      const int local = link_of_[taken.link.index()];
      if (local >= 0 && taken.begin_us < horizon_us * 2)
        blocked.push_back({local, taken.begin_us, taken.end_us});
    }
  }

  struct Taken {
    LinkId link;
    double begin_us, end_us;
  };

  const Topology& topology_;
  const HopTable& hops_;
  const Demand& demand_;
  const CommittedSchedule& committed_;
  const Decomposition& decomposition_;
  const Part& part_;
  const RoundWindow& window_;
  const std::vector<double>& relay_us_;
  const PartOptions& options_;
  const double bytes_;
  std::vector<double> free_us_;  ///< per link: from when on the plan may use it
  std::vector<Taken> taken_;
  std::vector<GpuId> gpus_;  ///< per node of the problem
  std::vector<int> node_of_gpu_;
  std::vector<LinkId> links_;  ///< per link of the problem
  std::vector<int> link_of_;
  std::vector<int> path_of_hop_;
  std::vector<PlacedMove> placed_;
  PartTask task_;
};

}  // namespace

int landing_epochs(const Hop& hop, double bytes, double tau_us) {
  return std::max(1, whole_epochs(hop.duration_us(bytes), tau_us));
}

PartTask make_part_task(const Topology& topology, const HopTable& hops, const Demand& demand,
                        const CommittedSchedule& committed, const Decomposition& decomposition,
                        const Part& part, const RoundWindow& window, const std::vector<Move>& plan,
                        const std::vector<PlacedMove>& decided, const std::vector<double>& relay_us,
                        const PartOptions& options) {
  return TaskBuilder(topology, hops, demand, committed, decomposition, part, window, relay_us, options)
      .build(plan, decided);
}

}  // namespace rondo
