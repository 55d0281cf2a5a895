#include "rondo/core/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "refuse.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMaxChunks = std::size_t{1} << 24;
constexpr std::size_t kMaxDeliveries = 100'000'000;

/// `deliveries`: destinations, summed over contributions.
void check_caps(std::size_t contributions, std::size_t deliveries, int chunks) {
  const auto per_contribution = static_cast<std::size_t>(chunks);
  if (contributions > kMaxChunks / per_contribution) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("{} contributions in {} chunks each are beyond the cap of {} chunks; ask for fewer",
                    contributions, chunks, kMaxChunks));
  }
  if (deliveries > kMaxDeliveries / per_contribution) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("{} destinations in {} chunks each are beyond the cap of {} chunks x destinations; ask "
                    "for fewer chunks or GPUs",
                    deliveries, chunks, kMaxDeliveries));
  }
}

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
}

/// A contribution for every part that is a sum of all inputs, by part.
std::vector<Contribution> sums_of(Collective collective, double size_bytes, std::size_t num_gpus,
                                  GpuId root) {
  std::vector<Contribution> all(collective->input_parts(num_gpus));
  for (Contribution& sum : all) {
    sum.origin = GpuId{0};
    sum.bytes = size_bytes / static_cast<double>(collective->num_parts(num_gpus));
    sum.reduce = true;
    for (std::size_t g = 0; g < num_gpus; ++g) sum.sources.push_back(GpuId(g));
  }
  collective->for_each_output_part(num_gpus, root.index(), [&](const OutputPart& to, const InputPart& from) {
    all[from.part].destinations.push_back(GpuId(to.gpu));
  });
  return all;
}

/// A contribution for every part of an input that another GPU wants, by GPU and part.
std::vector<Contribution> contributions_of(Collective collective, double size_bytes, std::size_t num_gpus,
                                           GpuId root) {
  if (collective->reduces) return sums_of(collective, size_bytes, num_gpus, root);
  const std::size_t parts = collective->input_parts(num_gpus);
  const std::size_t inputs = collective->input.at_root_only ? 1 : num_gpus;
  const auto for_each_part_sent = [&](const auto& visit) {
    collective->for_each_output_part(
        num_gpus, root.index(), [&](const OutputPart& to, const InputPart& from) {
          if (from.gpu != to.gpu) visit((inputs == 1 ? 0 : from.gpu * parts) + from.part, GpuId(to.gpu));
        });
  };
  std::vector<std::size_t> counts(inputs * parts, 0);
  for_each_part_sent([&](std::size_t i, GpuId) { ++counts[i]; });
  std::vector<Contribution> all(inputs * parts);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].origin = inputs == 1 ? root : GpuId(i / parts);
    all[i].bytes = size_bytes / static_cast<double>(collective->num_parts(num_gpus));
    all[i].destinations.reserve(counts[i]);
  }
  for_each_part_sent([&](std::size_t i, GpuId to) { all[i].destinations.push_back(to); });
  std::erase_if(all, [](const Contribution& c) { return c.destinations.empty(); });
  return all;
}

/// A lower bound of the collective's destinations, before anything of that size is allocated: no GPU wants
/// more than one part of its own.
std::size_t least_deliveries(Collective collective, std::size_t num_gpus) {
  const std::size_t outputs = collective->output.at_root_only ? 1 : num_gpus;
  return outputs * (collective->output_parts(num_gpus) - 1);
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
               std::vector<Contribution> contributions, int chunks_per_contribution)
    : collective_(collective),
      size_bytes_(size_bytes),
      num_gpus_(num_gpus),
      chunks_(chunks_per_contribution) {
  if (!(size_bytes > 0) || !std::isfinite(size_bytes)) {
    refuse(fmt::format("size_bytes is {}; it has to be positive and finite", size_bytes));
  }
  if (chunks_ < 1) refuse(fmt::format("chunks is {}; a contribution has at least 1 chunk", chunks_));
  if (contributions.empty()) refuse("the demand is empty; give at least one contribution");
  std::size_t deliveries = 0;
  for (const Contribution& c : contributions) deliveries += c.destinations.size();
  check_caps(contributions.size(), deliveries, chunks_);
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    Contribution& contribution = contributions[i];
    std::sort(contribution.destinations.begin(), contribution.destinations.end());
    if (!contribution.sources.empty()) sort_sources(contribution);
    if (contribution.sources.size() == 1 && !contribution.reduce) contribution.sources.clear();
    check_contribution(i, contribution, num_gpus_);
  }
  kind_ = kind_of(contributions);
  const double bytes = contributions.front().bytes;
  if (std::all_of(contributions.begin(), contributions.end(),
                  [&](const Contribution& c) { return c.bytes == bytes; })) {
    uniform_chunk_bytes_ = bytes / chunks_;
  }
  contributions_ = std::make_shared<const std::vector<Contribution>>(std::move(contributions));
}

double Demand::num_deliveries() const {
  double sum = 0;
  for (const Contribution& c : contributions()) sum += static_cast<double>(c.destinations.size());
  return sum * chunks_;
}

Demand Demand::with_size(double size_bytes) const {
  std::vector<Contribution> scaled = contributions();
  for (Contribution& c : scaled) c.bytes *= size_bytes / size_bytes_;
  return Demand(collective_, size_bytes, num_gpus_, std::move(scaled), chunks_);
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

Demand make_demand(Collective collective, double size_bytes, std::size_t num_gpus, int chunks, GpuId root) {
  if (!(size_bytes > 0) || !std::isfinite(size_bytes)) {
    throw Error(ExitCode::usage,
                fmt::format("size is {} bytes; it has to be positive and finite", size_bytes));
  }
  if (chunks < 1) {
    throw Error(ExitCode::usage,
                fmt::format("chunks is {}; every contribution has at least 1 chunk", chunks));
  }
  if (num_gpus < 2) refuse(fmt::format("a collective needs at least two GPUs; there are {}", num_gpus));
  if (!root.valid() || root.index() >= num_gpus) {
    throw Error(ExitCode::usage,
                fmt::format("root is {}, which is no GPU; GPUs are 0 to {}", root.value, num_gpus - 1));
  }
  if (collective->source == nullptr) {
    throw Error(ExitCode::usage, fmt::format("collective '{}' has no shape of its own; give a demand file",
                                             to_string(collective)));
  }
  if (!collective->has_root && root != GpuId{0}) {
    throw Error(ExitCode::usage, fmt::format("root is {}, but {} has no root; leave it out", root.value,
                                             to_string(collective)));
  }
  check_caps(1, least_deliveries(collective, num_gpus), chunks);
  return Demand(collective, size_bytes, num_gpus, contributions_of(collective, size_bytes, num_gpus, root),
                chunks);
}

GpuId root_of(const Demand& demand) {
  const Collective collective = demand.collective();
  if (!collective->has_root) return GpuId{0};
  const Contribution& first = demand.contributions().front();
  return collective->output.at_root_only || collective->reduces ? first.destinations.front() : first.origin;
}

}  // namespace rondo
