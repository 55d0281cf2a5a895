#include "chunk_counts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "rondo/flows/steiner_packing.hpp"

namespace rondo {
namespace {

constexpr double kMostChunksOfSearch = 128;
/// Of all contributions together, where paths and trees are mixed: few of them go many ways.
constexpr double kMostChunksOfMixed = 8192;
/// What improvement may split into: executors have to keep up.
constexpr double kMostChunksOfImprovement = 2 * kMostChunksOfSearch;
constexpr double kMostSends = 4e5;
/// Unless --min-chunk-bytes is set: whole thousands and powers of two halve down to the least evenly. Between
/// the two a contribution has kManyChunks.
constexpr double kLeastChunkBytes = 250;
constexpr double kEnoughChunkBytes = 1024;
constexpr double kManyChunks = 64;
/// After a kept schedule, the work of one policy, unless it is more in the fewest chunks; and from one number
/// of chunks to the next.
constexpr double kMostWorkAfterKept = 3e5;
/// Where routes are rounded besides.
constexpr double kMostUnicastWorkAfterKept = 1.5e5;
constexpr int kStepAfterKept = 4;

double mean_bytes(const Demand& demand) {
  double sum = 0;
  for (const Contribution& c : demand.contributions()) sum += c.bytes;
  return sum / static_cast<double>(demand.contributions().size());
}

/// Parts that a contribution has to begin with: sums for many GPUs are worked on by each of them.
double parts_of(const Demand& demand) {
  if (demand.kind() != DemandKind::all_reduction) return 1;
  return static_cast<double>(demand.contributions().front().destinations.size());
}

double most_chunks_of(double bytes, const SolveOptions& options) {
  const double least = std::clamp(bytes / kManyChunks, kLeastChunkBytes, kEnoughChunkBytes);
  return std::floor(bytes / options.min_chunk_bytes.value_or(least));
}

/// Chunks of the least bytes that a contribution has.
double most_by_bytes(const Demand& demand, const SolveOptions& options) {
  double smallest = demand.contributions().front().bytes;
  for (const Contribution& c : demand.contributions()) smallest = std::min(smallest, c.bytes);
  // By counts some are tiny, and cutting those does no harm as long as most chunks are not.
  if (!demand.shape().counts.empty() || demand.collective() == Collective::custom)
    smallest = mean_bytes(demand);
  return std::max(1.0, most_chunks_of(smallest, options));
}

double most_chunks_of_search(const Demand& demand) {
  const double parts = parts_of(demand);
  if (parts > 1) return parts * kMostChunksOfImprovement;
  const bool is_mixed = demand.collective() == Collective::custom && takes_steiner_trees(demand);
  const double each = kMostChunksOfMixed / static_cast<double>(demand.contributions().size());
  return is_mixed ? std::max(kMostChunksOfSearch, std::floor(each)) : kMostChunksOfSearch;
}

}  // namespace

int most_chunks_of_improvement(const Demand& demand, const SolveOptions& options) {
  if (options.chunks > 0) return options.chunks;
  return static_cast<int>(
      std::min(most_by_bytes(demand, options), parts_of(demand) * kMostChunksOfImprovement));
}

std::vector<int> chunk_counts(const Demand& demand, const SolveOptions& options) {
  if (options.chunks > 0) return {options.chunks};
  const double most = std::min({most_chunks_of_search(demand), most_by_bytes(demand, options),
                                std::floor(kMostSends / demand.num_deliveries())});
  std::vector<int> counts{1};
  for (int c = 2; c <= most; c *= 2) counts.push_back(c);
  if (most > counts.back()) counts.push_back(static_cast<int>(most));
  return counts;
}

std::vector<int> chunk_counts_of(const EngineInfo& engine, const Demand& demand,
                                 const SolveOptions& options) {
  std::vector<int> counts = chunk_counts(demand, options);
  if (engine.most_sends && options.chunks == 0) {
    const double smallest = std::ranges::min(demand.contributions(), {}, &Contribution::bytes).bytes;
    const double most = std::min(most_chunks_of(smallest, options),
                                 std::floor(engine.most_sends(demand) / demand.num_deliveries()));
    counts = {1};
    while (2.0 * counts.back() <= most) counts.push_back(2 * counts.back());
    return counts;
  }
  if (options.chunks == 0 && !options.only_powers_of_two) {
    std::ranges::copy_if(engine.found_counts, std::back_inserter(counts),
                         [most = counts.back()](int chunks) { return chunks < most; });
    std::ranges::sort(counts);
    counts.erase(std::ranges::unique(counts).begin(), counts.end());
  }
  const int pieces = engine.pieces && options.chunks == 0 ? engine.pieces(demand) : 1;
  if (pieces == 1 || (pieces > counts.back() && parts_of(demand) == 1)) return counts;
  const int most = std::max(pieces, counts.back());
  counts.clear();
  // Half as many again, too: shares of rings are often thirds.
  for (int c = pieces; c <= most; c *= 2) {
    counts.push_back(c);
    if (c > pieces && c <= most / 3 * 2) counts.push_back(c / 2 * 3);
  }
  return counts;
}

int most_pipelined_chunks(const EngineInfo& engine, const Demand& demand, const SolveOptions& options) {
  if (!engine.most_pipelined || options.chunks > 0) return 0;
  return static_cast<int>(
      std::min(most_by_bytes(demand, options), engine.most_pipelined(demand) / demand.num_deliveries()));
}

std::vector<int> counts_after_kept(const EngineInfo& engine, int kept, const Demand& demand,
                                   const SolveOptions& options) {
  const double most = demand.is_unicast() ? kMostUnicastWorkAfterKept : kMostWorkAfterKept;
  std::vector<int> affordable;
  for (const int chunks : chunk_counts_of(engine, demand, options)) {
    if (affordable.empty() || engine.work(demand.with_chunks(chunks), options.policy) <= most)
      affordable.push_back(chunks);
  }
  std::vector<int> counts;
  if (!engine.pieces && kept < affordable.back()) counts.push_back(kept);
  for (const int chunks : affordable) {
    if (chunks >= (counts.empty() ? kept : kStepAfterKept * counts.back())) counts.push_back(chunks);
  }
  if (counts.empty() || counts.back() != affordable.back()) counts.push_back(affordable.back());
  return counts;
}

}  // namespace rondo
