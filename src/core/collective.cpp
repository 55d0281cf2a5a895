#include "rondo/core/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "demand_caps.hpp"
#include "refuse.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

void check_gpu(std::size_t contribution, const char* role, GpuId gpu, std::size_t num_gpus) {
  if (!gpu.valid() || gpu.index() >= num_gpus) {
    refuse(fmt::format("contribution {}: {} is GPU {}, which does not exist; GPUs are 0 to {}", contribution,
                       role, gpu.value, num_gpus - 1));
  }
}

void sort_sources(Contribution& contribution) {
  const auto& ready_us = contribution.source_ready_us;
  std::vector<std::size_t> order(contribution.sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return contribution.sources[i]; });
  Contribution sorted = contribution;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.sources[i] = contribution.sources[order[i]];
    if (ready_us.size() == order.size()) sorted.source_ready_us[i] = ready_us[order[i]];
  }
  for (HeldSum& held : sorted.held) std::ranges::sort(held.sources);
  sorted.origin = sorted.sources.front();
  contribution = std::move(sorted);
}

void check_ready(std::size_t id, double ready_us) {
  if (!(ready_us >= 0) || !std::isfinite(ready_us))
    refuse(fmt::format("contribution {}: ready_us is {}; it has to be 0 or more and finite", id, ready_us));
}

void check_sources(std::size_t id, const Contribution& contribution, std::size_t num_gpus) {
  const auto& sources = contribution.sources;
  for (const GpuId source : sources) check_gpu(id, "a source", source, num_gpus);
  if (const auto repeated = std::adjacent_find(sources.begin(), sources.end()); repeated != sources.end())
    refuse(fmt::format("contribution {}: source {} is named twice; name it once", id, repeated->value));
  if (contribution.reduce && sources.size() < 2) {
    refuse(fmt::format("contribution {}: a sum needs two sources or more; it has {}", id,
                       contribution.all_sources().size()));
  }
  if (!contribution.source_ready_us.empty() && contribution.source_ready_us.size() != sources.size()) {
    refuse(fmt::format("contribution {}: {} ready times for {} sources; give one for each", id,
                       contribution.source_ready_us.size(), sources.size()));
  }
  for (const double ready_us : contribution.source_ready_us) check_ready(id, ready_us);
}

void check_held(std::size_t id, const Contribution& contribution, std::size_t num_gpus) {
  if (!contribution.held.empty() && !contribution.reduce)
    refuse(fmt::format("contribution {}: only partial sums are held; it does not reduce", id));
  std::vector<GpuId> holders;
  for (const HeldSum& held : contribution.held) {
    check_gpu(id, "a holder", held.gpu, num_gpus);
    holders.push_back(held.gpu);
    if (!std::ranges::is_sorted(held.sources) ||
        std::ranges::adjacent_find(held.sources) != held.sources.end() ||
        !std::ranges::includes(contribution.sources, held.sources)) {
      refuse(
          fmt::format("contribution {}: what GPU {} holds has to be the sum of some of its sources, each "
                      "once, or of none",
                      id, held.gpu.value));
    }
  }
  std::ranges::sort(holders);
  if (const auto twice = std::ranges::adjacent_find(holders); twice != holders.end())
    refuse(fmt::format("contribution {}: GPU {} holds two sums; it can hold one", id, twice->value));
}

void check_contribution(std::size_t id, const Contribution& contribution, std::size_t num_gpus) {
  check_gpu(id, "the origin", contribution.origin, num_gpus);
  check_sources(id, contribution, num_gpus);
  check_held(id, contribution, num_gpus);
  if (contribution.destinations.empty()) {
    refuse(fmt::format("contribution {}: nobody wants it; give at least one destination", id));
  }
  for (const GpuId destination : contribution.destinations) {
    check_gpu(id, "a destination", destination, num_gpus);
    if (!contribution.reduce && std::ranges::count(contribution.all_sources(), destination) > 0) {
      refuse(
          fmt::format("contribution {}: GPU {} is origin and destination; leave it out of the destinations",
                      id, destination.value));
    }
  }
  const auto repeated =
      std::adjacent_find(contribution.destinations.begin(), contribution.destinations.end());
  if (repeated != contribution.destinations.end()) {
    refuse(fmt::format("contribution {}: destination {} is named twice; name it once", id, repeated->value));
  }
  if (!(contribution.bytes > 0) || !std::isfinite(contribution.bytes)) {
    refuse(fmt::format("contribution {}: bytes is {}; it has to be positive and finite", id,
                       contribution.bytes));
  }
  check_ready(id, contribution.ready_us);
  if (contribution.tenant < 0)
    refuse(fmt::format("contribution {}: tenant is {}; it has to be 0 or more", id, contribution.tenant));
  if (!(contribution.priority > 0) || !std::isfinite(contribution.priority)) {
    refuse(fmt::format("contribution {}: priority is {}; it has to be positive and finite", id,
                       contribution.priority));
  }
}

void check_priorities(const std::vector<Contribution>& contributions) {
  std::map<int, std::size_t> first;
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    const std::size_t other = first.emplace(contributions[i].tenant, i).first->second;
    if (contributions[i].priority == contributions[other].priority) continue;
    refuse(fmt::format(
        "contribution {}: tenant {} has priority {}, but {} in contribution {}; a tenant has one", i,
        contributions[i].tenant, contributions[i].priority, contributions[other].priority, other));
  }
}

/// Nothing of the data may start or end at a GPU that takes no part.
void check_in_group(std::size_t id, const Contribution& contribution, const std::vector<GpuId>& group) {
  const auto check = [&](const char* role, GpuId gpu) {
    if (std::ranges::binary_search(group, gpu)) return;
    refuse(fmt::format("contribution {}: {} is GPU {}, which is not in the group {}; name one of its members",
                       id, role, gpu.value, to_string(group)));
  };
  for (const GpuId source : contribution.all_sources()) check("a source", source);
  for (const GpuId destination : contribution.destinations) check("a destination", destination);
  for (const HeldSum& held : contribution.held) check("a holder", held.gpu);
}

DemandKind kind_of(const std::vector<Contribution>& contributions) {
  const auto all = [&](auto has) { return std::ranges::all_of(contributions, has); };
  const auto one_destination = [](const Contribution& c) { return c.destinations.size() == 1; };
  if (all([](const Contribution& c) { return c.sources.empty(); }))
    return all(one_destination) ? DemandKind::unicast : DemandKind::multicast;
  const bool only_sums = all([](const Contribution& c) { return c.reduce && c.held.empty(); });
  return only_sums && all(one_destination) ? DemandKind::reduction : DemandKind::all_reduction;
}

}  // namespace

Demand::Demand(Collective collective, double size_bytes, std::size_t num_gpus,
               std::vector<Contribution> contributions, int chunks_per_contribution, CollectiveShape shape)
    : collective_(collective),
      size_bytes_(size_bytes),
      num_gpus_(num_gpus),
      chunks_(chunks_per_contribution) {
  if (!(size_bytes > 0) || !std::isfinite(size_bytes)) {
    refuse(fmt::format("size_bytes is {}; it has to be positive and finite", size_bytes));
  }
  if (chunks_ < 1) refuse(fmt::format("chunks is {}; a contribution has at least 1 chunk", chunks_));
  if (contributions.empty()) refuse("the demand is empty; give at least one contribution");
  check_shape(shape, collective, num_gpus_);
  if (shape.group.size() == num_gpus_) shape.group.clear();
  std::size_t deliveries = 0;
  for (const Contribution& c : contributions) deliveries += c.destinations.size();
  check_caps(contributions.size(), deliveries, chunks_);
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    Contribution& contribution = contributions[i];
    std::sort(contribution.destinations.begin(), contribution.destinations.end());
    if (!contribution.sources.empty()) sort_sources(contribution);
    if (contribution.sources.size() == 1 && !contribution.reduce) contribution.sources.clear();
    check_contribution(i, contribution, num_gpus_);
    if (!shape.group.empty()) check_in_group(i, contribution, shape.group);
  }
  check_priorities(contributions);
  if (!shape.is_plain()) shape_ = std::make_shared<const CollectiveShape>(std::move(shape));
  kind_ = kind_of(contributions);
  const double bytes = contributions.front().bytes;
  if (std::all_of(contributions.begin(), contributions.end(),
                  [&](const Contribution& c) { return c.bytes == bytes; })) {
    uniform_chunk_bytes_ = bytes / chunks_;
  }
  contributions_ = std::make_shared<const std::vector<Contribution>>(std::move(contributions));
}

const CollectiveShape& Demand::shape() const {
  static const CollectiveShape plain;
  return shape_ ? *shape_ : plain;
}

double Demand::num_deliveries() const {
  double sum = 0;
  for (const Contribution& c : contributions()) sum += static_cast<double>(c.destinations.size());
  return sum * chunks_;
}

Demand Demand::with_size(double size_bytes) const {
  std::vector<Contribution> scaled = contributions();
  for (Contribution& c : scaled) c.bytes *= size_bytes / size_bytes_;
  CollectiveShape scaled_shape = shape();
  for (double& bytes : scaled_shape.counts) bytes *= size_bytes / size_bytes_;
  return Demand(collective_, size_bytes, num_gpus_, std::move(scaled), chunks_, std::move(scaled_shape));
}

Demand Demand::with_chunks(int chunks_per_contribution) const {
  if (chunks_per_contribution < 1) {
    refuse(fmt::format("chunks is {}; a contribution has at least 1 chunk", chunks_per_contribution));
  }
  std::size_t deliveries = 0;
  for (const Contribution& c : contributions()) deliveries += c.destinations.size();
  check_caps(contributions().size(), deliveries, chunks_per_contribution);
  Demand split = *this;
  split.chunks_ = chunks_per_contribution;
  if (uniform_chunk_bytes_)
    split.uniform_chunk_bytes_ = contributions().front().bytes / chunks_per_contribution;
  return split;
}

}  // namespace rondo
