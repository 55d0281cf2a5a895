#include "knowledge_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kinds.hpp"
#include "rondo/core/knowledge.hpp"

namespace rondo::certificates {

KnowledgePlaces::KnowledgePlaces(const Topology& topology, const Demand& demand,
                                 const KnowledgeCertificate& certificate)
    : topology_(topology), certificate_(certificate), origins_(topology) {
  check();
  count(demand);
  if (!(all_bytes_ > 0)) {
    refuse_certificate(
        fmt::format("GPU {} wants nothing of the sources named; that proves nothing", certificate.gpu.value));
  }
  make_places();
}

void KnowledgePlaces::check() const {
  if (!certificate_.gpu.valid() || certificate_.gpu.index() >= topology_.num_gpus()) {
    refuse_certificate(fmt::format("GPU {} does not exist; GPUs are 0 to {}", certificate_.gpu.value,
                                   topology_.num_gpus() - 1));
  }
  check_ascending(certificate_.sources, topology_.num_gpus(), "sources");
  for (const std::vector<NodeId>& set : certificate_.sets)
    check_ascending(set, topology_.num_nodes(), "nodes of a set");
  const std::vector<double>& times = certificate_.times_us;
  const bool ascending = std::ranges::adjacent_find(times, std::ranges::greater_equal{}) == times.end() &&
                         std::ranges::all_of(times, [](double t) { return std::isfinite(t); });
  if (times.size() < 2 || times.size() > kMostKnowledgeTimes || times.front() != 0 || !ascending) {
    refuse_certificate(
        fmt::format("there have to be 2 to {} times, ascending from 0 us", kMostKnowledgeTimes));
  }
  if (certificate_.sets.size() > kMostKnowledgeSets)
    refuse_certificate(
        fmt::format("there are {} sets; {} are the most", certificate_.sets.size(), kMostKnowledgeSets));
}

bool KnowledgePlaces::is_named(GpuId source) const {
  return std::ranges::binary_search(certificate_.sources, source);
}

/// What the GPU wants of the sources. The named sources of a sum have equal shares of its bytes, each the
/// data of one.
void KnowledgePlaces::count(const Demand& demand) {
  std::map<std::vector<std::pair<NodeId, double>>, double> bytes;
  const auto add = [&](const Contribution& part, const std::vector<GpuId>& holders, double some) {
    std::vector<std::pair<NodeId, double>> at;
    for (const GpuId g : holders) at.emplace_back(topology_.node_of(g), ready_of_holder(part, g));
    bytes[std::move(at)] += some;
    all_bytes_ += some;
  };
  for (const Contribution& part : demand.contributions()) {
    if (!std::ranges::binary_search(part.destinations, certificate_.gpu)) continue;
    if (!part.reduce) {
      if (is_named(part.origin)) add(part, holders_of(part, part.origin), part.bytes);
      continue;
    }
    std::vector<std::vector<GpuId>> homes;
    for (const GpuId source : part.sources) {
      if (!is_named(source)) continue;
      std::vector<GpuId> holders = holders_of(part, source);
      if (!holders.empty()) homes.push_back(std::move(holders));
    }
    for (const std::vector<GpuId>& holders : homes)
      add(part, holders, part.bytes / static_cast<double>(homes.size()));
  }
  for (const auto& [holders, some] : bytes) data_.push_back({some, holders});
}

void KnowledgePlaces::make_places() {
  for (const std::vector<NodeId>& nodes_of_set : certificate_.sets) {
    order_.push_back(nodes() + inside_.size());
    std::vector<char>& flags = inside_.emplace_back(nodes(), 0);
    for (const NodeId n : nodes_of_set) flags[n.index()] = 1;
  }
  std::ranges::stable_sort(order_, std::ranges::greater{},
                           [&](std::size_t place) { return set(place).size(); });
  for (std::size_t l = 0; l < topology_.num_links(); ++l) feeding_.push_back(sets_with_origins(LinkId(l)));
  places_.resize(nodes() + inside_.size());
  const std::vector<std::size_t> sets = order_;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    places_[sets[i]] = made_place(sets[i]);
    for (std::size_t larger = 0; larger < i; ++larger) {
      if (std::ranges::all_of(set(sets[i]), [&](NodeId n) { return contains(sets[larger], n); }))
        places_[sets[i]].within.push_back(sets[larger]);
    }
  }
  for (std::size_t n = 0; n < nodes(); ++n) {
    if (origins_.is_passed(NodeId(n))) continue;
    order_.push_back(n);
    places_[n] = made_place(n);
    std::ranges::copy_if(sets, std::back_inserter(places_[n].within),
                         [&](std::size_t place) { return contains(place, NodeId(n)); });
  }
}

std::vector<std::size_t> KnowledgePlaces::sets_with_origins(LinkId l) const {
  std::vector<std::size_t> with;
  for (std::size_t place = nodes(); place < nodes() + inside_.size(); ++place) {
    const bool all = std::ranges::all_of(origins_.of(l), [&](const Origins::Group& group) {
      return std::ranges::all_of(group.nodes, [&](NodeId n) { return contains(place, n); });
    });
    if (all) with.push_back(place);
  }
  return with;
}

KnowledgePlaces::Place KnowledgePlaces::made_place(std::size_t index) const {
  Place place;
  for (std::size_t l = 0; l < topology_.num_links(); ++l) {
    const Link& link = topology_.link(LinkId(l));
    if (!contains(index, link.dst) || contains(index, link.src) || origins_.of(LinkId(l)).empty()) continue;
    const Wide delay_us = Wide{link.latency_us} + origins_.message_us(LinkId(l));
    if (place.entering.empty()) {
      place.fed_by = feeding_[l];
      place.delay_us = delay_us;
    }
    std::erase_if(place.fed_by, [&](std::size_t p) { return !std::ranges::binary_search(feeding_[l], p); });
    place.delay_us = std::min(place.delay_us, delay_us);
    place.entering.push_back(l);
  }
  std::map<double, double> by_time;
  for (const Datum& datum : data_) {
    double ready_us = std::numeric_limits<double>::infinity();
    for (const auto& [node, us] : datum.holders) {
      if (contains(index, node)) ready_us = std::min(ready_us, us);
    }
    if (std::isfinite(ready_us)) by_time[ready_us] += datum.bytes;
  }
  double sum = 0;
  for (const auto& [us, some] : by_time) place.at_first.emplace_back(us, sum += some);
  return place;
}

}  // namespace rondo::certificates
