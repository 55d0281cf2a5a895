#include "canonical_demand.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "rondo/core/schedule.hpp"

namespace rondo {
namespace {

using Held = std::vector<std::pair<GpuId, std::vector<GpuId>>>;
/// What contributions have in common that are one.
using Ends =
    std::tuple<bool, std::vector<GpuId>, std::vector<GpuId>, double, std::vector<double>, Held, int, double>;

Ends ends_of(const Contribution& c) {
  Held held;
  for (const HeldSum& sum : c.held) held.emplace_back(sum.gpu, sum.sources);
  const auto sources = c.all_sources();
  return {c.reduce,          {sources.begin(), sources.end()},
          c.destinations,    c.ready_us,
          c.source_ready_us, held,
          c.tenant,          c.priority};
}

std::map<Ends, std::size_t> numbers_of(const std::vector<Contribution>& contributions) {
  std::map<Ends, std::size_t> numbers;
  for (std::size_t i = 0; i < contributions.size(); ++i) numbers.emplace(ends_of(contributions[i]), i);
  return numbers;
}

/// In the order in which they come first.
std::vector<Contribution> merged(const std::vector<Contribution>& contributions) {
  std::vector<Contribution> result;
  std::map<Ends, std::size_t> known;
  for (const Contribution& c : contributions) {
    const auto [at, is_new] = known.emplace(ends_of(c), result.size());
    if (is_new) {
      result.push_back(c);
    } else {
      result[at->second].bytes += c.bytes;
    }
  }
  return result;
}

/// The group that exchanges data; empty where all GPUs do.
CollectiveShape shape_of(const std::vector<Contribution>& contributions, std::size_t num_gpus) {
  std::set<GpuId> members;
  for (const Contribution& c : contributions) {
    const auto sources = c.all_sources();
    members.insert(sources.begin(), sources.end());
    members.insert(c.destinations.begin(), c.destinations.end());
  }
  CollectiveShape shape;
  if (members.size() < num_gpus) shape.group.assign(members.begin(), members.end());
  return shape;
}

/// The collective that asks for just this, if there is one.
std::optional<Demand> named(const Demand& custom) {
  if (!custom.uniform_chunk_bytes() || custom.forbids_relays()) return std::nullopt;
  const auto& parts = custom.contributions();
  const Contribution& first = parts.front();
  const CollectiveShape shape = shape_of(parts, custom.num_gpus());
  const std::size_t members = shape.group.empty() ? custom.num_gpus() : shape.group.size();
  for (const CollectiveRow& row : collective_rows()) {
    if (row.source == nullptr || row.reduces != first.reduce) continue;
    const std::size_t inputs = row.input.at_root_only || row.reduces ? 1 : members;
    const std::size_t most = inputs * row.input_parts(members);
    if (parts.size() > most || parts.size() + members < most) continue;
    const bool is_to_root = row.output.at_root_only || row.reduces;
    const GpuId root = !row.has_root ? GpuId{0} : is_to_root ? first.destinations.front() : first.origin;
    const double size_bytes = first.bytes * static_cast<double>(row.num_parts(members));
    Demand known = make_demand(Collective(row), size_bytes, custom.num_gpus(),
                               custom.chunks_per_contribution(), root, shape);
    if (!difference(known, custom)) return known;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CanonicalDemand> canonical(const Demand& custom) {
  if (custom.collective() != Collective::custom || !custom.shape().is_plain()) return std::nullopt;
  const auto& asked = custom.contributions();
  std::vector<Contribution> parts = merged(asked);
  const bool is_one_to_one = parts.size() == asked.size();
  const Demand fewer(Collective::custom, custom.size_bytes(), custom.num_gpus(), std::move(parts),
                     custom.chunks_per_contribution());
  std::optional<Demand> known = named(fewer);
  if (!known && is_one_to_one) return std::nullopt;
  CanonicalDemand result{known ? std::move(*known) : fewer};
  if (!is_one_to_one) return result;
  const std::map<Ends, std::size_t> numbers = numbers_of(asked);
  for (const Contribution& c : result.demand.contributions())
    result.asked_as.push_back(numbers.at(ends_of(c)));
  return result;
}

SynthesisResult as_asked(const Demand& custom, const CanonicalDemand& solved, SynthesisResult result) {
  ProvenSchedule& proven = result.proven;
  const int chunks = proven.demand.chunks_per_contribution();
  if (solved.asked_as.empty()) {
    proven.demand = Demand(Collective::custom, custom.size_bytes(), custom.num_gpus(),
                           proven.demand.contributions(), chunks);
    return result;
  }
  const auto each = static_cast<std::size_t>(chunks);
  for (Send& send : proven.schedule.sends) {
    const std::size_t chunk = send.chunk.index();
    send.chunk = ChunkId{solved.asked_as[chunk / each] * each + chunk % each};
  }
  canonicalise(proven.schedule);
  proven.demand = custom.with_chunks(chunks);
  return result;
}

}  // namespace rondo
