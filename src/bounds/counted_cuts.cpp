#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "best_time_cut.hpp"
#include "both_directions.hpp"
#include "rondo/bounds/time_cuts.hpp"
#include "rondo/core/contribution_times.hpp"
#include "rondo/graph/digraph.hpp"
#include "unrolled_cut.hpp"

namespace rondo {
namespace {

/// Arcs of unrolled networks, of which minimum cuts are found, and links that the sources' data is followed
/// over for each network and each check, beyond which what remains is left out; about 3 s.
constexpr std::size_t kMostCountedWork = 10'000'000;
/// Of a destination, the sources at least so far away: as many distances are tried.
constexpr std::size_t kMostCountedDistances = 6;
/// How often those that a cut separates are counted anew, without the others.
constexpr int kMostRecounts = 3;
/// Of the time: the first step, what a step is reduced by where it fails, and the last one, at first and for
/// what has proved best.
constexpr double kFirstGain = 0.25;
constexpr double kLessGain = 0.25;
constexpr double kLastGain = 1e-4;
constexpr double kLastGainOfBest = 1e-8;

/// A destination, and whose contributions to its sums are counted.
struct CountedTask {
  GpuId destination;
  std::vector<GpuId> sources;
};

class CountedSearch {
 public:
  CountedSearch(const OneSidedTask& asked, const Deadline& deadline)
      : topology_(asked.topology),
        demand_(asked.demand),
        deadline_(deadline),
        best_(asked.topology, asked.demand, asked.least_us) {}

  std::optional<LowerBound> run(const std::vector<GpuId>& destinations, const std::vector<NodeSet>& cuts) {
    for (const GpuId d : destinations) {
      const std::vector<const Contribution*> sums = plain_sums_for(demand_, d);
      if (sums.empty()) continue;
      for (const std::vector<GpuId>& sources : sets_of_sources(d, sums, cuts)) {
        if (has_work_left() && sources.size() * topology_.num_links() <= kMostCountedWork)
          try_sources({d, sources}, sums);
      }
    }
    if (best_.bound()) {
      const auto& cut = std::get<TimeCutCertificate>(best_.bound()->certificate);
      approach({cut.gpu, cut.sources}, plain_sums_for(demand_, cut.gpu), kLastGainOfBest);
    }
    return best_.take();
  }

 private:
  bool has_work_left() const { return work_ <= kMostCountedWork && !deadline_.is_over(); }
  void count_ways_from(std::size_t sources) { work_ += sources * topology_.num_links(); }

  /// All but the destination; those that are far from it; those inside cuts.
  std::set<std::vector<GpuId>> sets_of_sources(GpuId destination,
                                               const std::vector<const Contribution*>& sums,
                                               const std::vector<NodeSet>& cuts) const {
    std::set<GpuId> all;
    for (const Contribution* sum : sums) all.insert(sum->sources.begin(), sum->sources.end());
    all.erase(destination);
    std::set<std::vector<GpuId>> sets;
    const auto add = [&](const auto& is_in) {
      std::vector<GpuId> members;
      std::ranges::copy_if(all, std::back_inserter(members), is_in);
      if (!members.empty()) sets.insert(std::move(members));
    };
    const std::vector<double> distance_us =
        shortest_paths(reversed(topology_.graph()), TimedNetwork(topology_).delay_us,
                       topology_.node_of(destination).value)
            .distance;
    const auto far_us = [&](GpuId g) { return distance_us[topology_.node_of(g).index()]; };
    std::set<double> distances_us;
    for (const GpuId g : all) distances_us.insert(far_us(g));
    std::size_t number = 0;
    for (const double us : distances_us) {
      // The first one stands for all.
      if (number++ * kMostCountedDistances % distances_us.size() < kMostCountedDistances)
        add([&](GpuId g) { return far_us(g) >= us; });
    }
    for (const NodeSet& inside : cuts) {
      if (!inside[topology_.node_of(destination).index()])
        add([&](GpuId g) { return inside[topology_.node_of(g).index()] != 0; });
    }
    return sets;
  }

  void try_sources(CountedTask task, const std::vector<const Contribution*>& sums) {
    for (int i = 0; i < kMostRecounts && has_work_left(); ++i) {
      const std::vector<GpuId> separated = approach(task, sums, kLastGain);
      if (separated.empty() || separated == task.sources) return;
      task.sources = separated;
    }
  }

  /// To later and later times, in steps that are made smaller after a failure. Returns the sources that the
  /// last cut separates from the destination, nothing where it separates none.
  std::vector<GpuId> approach(const CountedTask& task, const std::vector<const Contribution*>& sums,
                              double last_gain) {
    const TimedNetwork network(topology_, timed_sources(sums, task.sources));
    count_ways_from(task.sources.size());
    const std::vector<Supply> supplies = supplies_of(sums, task.sources);
    const NodeId target = topology_.node_of(task.destination);
    UnrolledCut last = unrolled_cut(network, supplies, target, best_.us(), work_);
    if (last.separated.empty()) return {};
    for (double gain = kFirstGain; gain > last_gain && has_work_left();) {
      UnrolledCut cut = unrolled_cut(network, supplies, target, best_.us() * (1 + gain), work_);
      count_ways_from(task.sources.size());
      if (best_.keep_if_better(
              {.gpu = task.destination, .alpha_us = cut.alpha_us, .sources = task.sources})) {
        last = std::move(cut);
      } else {
        gain *= kLessGain;
      }
    }
    std::set<GpuId> separated;
    for (const Supply* supply : last.separated)
      separated.insert(topology_.gpu_of(supply->holders.front().first));
    return {separated.begin(), separated.end()};
  }

  std::vector<Supply> supplies_of(const std::vector<const Contribution*>& sums,
                                  const std::vector<GpuId>& sources) const {
    std::map<std::pair<NodeId, double>, double> bytes;
    for (const Contribution* sum : sums) {
      for (std::size_t i = 0; i < sum->sources.size(); ++i) {
        if (std::ranges::binary_search(sources, sum->sources[i]))
          bytes[{topology_.node_of(sum->sources[i]), sum->ready_us_of(i)}] += sum->bytes;
      }
    }
    std::vector<Supply> supplies;
    for (const auto& [holder, sum] : bytes) supplies.push_back({sum, {holder}});
    return supplies;
  }

  const Topology& topology_;
  const Demand& demand_;
  const Deadline& deadline_;
  BestTimeCut best_;
  std::size_t work_ = 0;
};

}  // namespace

std::optional<LowerBound> find_counted_cut(const Topology& topology, const Demand& demand,
                                           const Symmetry& symmetry, const std::vector<NodeSet>& cuts,
                                           double least_us, const Deadline& deadline) {
  if (topology.has_bandwidth_steps()) return std::nullopt;
  return searched_in_both_directions(topology, demand, symmetry, cuts, least_us,
                                     [&](const OneSidedTask& task) {
                                       return CountedSearch(task, deadline).run(task.destinations, task.cuts);
                                     });
}

}  // namespace rondo
