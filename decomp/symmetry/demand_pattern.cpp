#include <algorithm>
#include <map>
#include <tuple>

#include "rondo/decomp/orbits.hpp"

namespace rondo {
namespace {

/// Bytes and ready times of all contributions that have the same ends.
using Data = std::vector<std::pair<double, double>>;

/// Numbers for what is equal, in the order of the keys.
template <class Key>
class Kinds {
 public:
  void add(const Key& key) { number_.try_emplace(key, 0); }
  void close() {
    int next = 0;
    for (auto& [key, number] : number_) number = next++;
  }
  int operator()(const Key& key) const { return number_.at(key); }

 private:
  std::map<Key, int> number_;
};

struct Pair {
  GpuId origin;
  GpuId destination;
  auto operator<=>(const Pair&) const = default;
};

/// All pairs that exchange data, ascending.
std::vector<std::pair<Pair, Data>> pairs_of(const Demand& demand) {
  std::vector<std::tuple<Pair, double, double>> all;
  all.reserve(demand.contributions().size());
  for (const Contribution& c : demand.contributions())
    all.emplace_back(Pair{c.origin, c.destinations.front()}, c.bytes, c.ready_us);
  std::sort(all.begin(), all.end());
  std::vector<std::pair<Pair, Data>> pairs;
  pairs.reserve(all.size());
  for (const auto& [pair, bytes, ready_us] : all) {
    if (pairs.empty() || pairs.back().first != pair) pairs.emplace_back(pair, Data{});
    pairs.back().second.emplace_back(bytes, ready_us);
  }
  return pairs;
}

DemandPattern unicast_pattern(const Demand& demand) {
  const std::vector<std::pair<Pair, Data>> pairs = pairs_of(demand);
  std::map<Data, std::size_t> count;
  for (const auto& [pair, data] : pairs) ++count[data];
  const std::size_t gpus = demand.num_gpus();
  count[Data{}] = gpus * (gpus - 1) - pairs.size();
  const auto most = std::max_element(count.begin(), count.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::map<Data, int> kind;
  for (const auto& [data, n] : count) kind.emplace(data, static_cast<int>(kind.size()));

  DemandPattern pattern;
  pattern.gpu_kind.assign(gpus, 0);
  pattern.irregular = gpus * (gpus - 1) - most->second > kMaxPatternEnds / 2;
  if (pattern.irregular) return pattern;
  const bool absent_counts = most->first != Data{};
  auto next = pairs.begin();
  for (std::size_t s = 0; s < gpus; ++s) {
    if (!absent_counts && next == pairs.end()) break;
    for (std::size_t d = 0; d < gpus; ++d) {
      const Pair pair{GpuId{s}, GpuId{d}};
      const bool present = next != pairs.end() && next->first == pair;
      const Data& data = present ? next->second : count.begin()->first;  // no data comes first
      if (s != d && data != most->first)
        pattern.arcs.push_back({pair.origin, {pair.destination}, kind.at(data)});
      if (present) ++next;
    }
  }
  return pattern;
}

DemandPattern multicast_pattern(const Demand& demand) {
  const std::size_t gpus = demand.num_gpus();
  std::vector<Data> to_all(gpus);
  Kinds<std::pair<double, double>> arc_kinds;
  std::size_t ends = 0;
  for (const Contribution& c : demand.contributions()) {
    if (c.destinations.size() + 1 == gpus) {
      to_all[c.origin.index()].emplace_back(c.bytes, c.ready_us);
    } else {
      arc_kinds.add({c.bytes, c.ready_us});
      ends += c.destinations.size() + 1;
    }
  }
  DemandPattern pattern;
  pattern.irregular = ends > kMaxPatternEnds;
  Kinds<Data> gpu_kinds;
  for (Data& data : to_all) {
    std::sort(data.begin(), data.end());
    gpu_kinds.add(data);
  }
  gpu_kinds.close();
  for (const Data& data : to_all) pattern.gpu_kind.push_back(gpu_kinds(data));
  if (pattern.irregular) return pattern;
  arc_kinds.close();
  for (const Contribution& c : demand.contributions()) {
    if (c.destinations.size() + 1 == gpus) continue;
    pattern.arcs.push_back({c.origin, c.destinations, arc_kinds({c.bytes, c.ready_us})});
  }
  std::sort(pattern.arcs.begin(), pattern.arcs.end());
  return pattern;
}

/// Sums of the members of a group for all of them look the same to each. Other data with several sources is
/// left without symmetry.
DemandPattern pattern_of_sums(const Demand& demand) {
  const std::vector<GpuId>& members = demand.contributions().front().sources;
  DemandPattern pattern;
  pattern.gpu_kind.assign(demand.num_gpus(), 0);
  pattern.irregular = std::ranges::any_of(demand.contributions(), [&](const Contribution& c) {
    return !c.reduce || !c.held.empty() || !c.source_ready_us.empty() || c.sources != members ||
           c.destinations != members;
  });
  if (pattern.irregular || members.size() == demand.num_gpus()) return pattern;
  for (const GpuId g : members) pattern.gpu_kind[g.index()] = 1;
  return pattern;
}

}  // namespace

DemandPattern demand_pattern(const Demand& demand) {
  if (demand.has_several_sources()) return pattern_of_sums(demand);
  return demand.is_unicast() ? unicast_pattern(demand) : multicast_pattern(demand);
}

}  // namespace rondo
