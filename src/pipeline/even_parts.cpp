#include "even_parts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rondo {
namespace {

/// Of one contribution.
constexpr double kMostEvenParts = 256;
/// Of the mean: a custom demand's parts are about as large as the smallest contribution, but not below that.
constexpr double kLeastShareOfMean = 0.125;

}  // namespace

std::optional<Demand> in_even_parts(const Demand& demand) {
  const bool is_custom = demand.collective() == Collective::custom;
  if ((demand.shape().counts.empty() && !is_custom) || demand.uniform_chunk_bytes()) return std::nullopt;
  const auto& contributions = demand.contributions();
  double mean_bytes = 0;
  for (const Contribution& c : contributions)
    mean_bytes += c.bytes / static_cast<double>(contributions.size());
  double part_bytes = mean_bytes;
  if (is_custom) {
    for (const Contribution& c : contributions) part_bytes = std::min(part_bytes, c.bytes);
    part_bytes = std::max(part_bytes, kLeastShareOfMean * mean_bytes);
  }
  std::vector<Contribution> parts;
  for (const Contribution& c : contributions) {
    const double number = std::clamp(std::round(c.bytes / part_bytes), 1.0, kMostEvenParts);
    Contribution part = c;
    part.bytes = c.bytes / number;
    parts.insert(parts.end(), static_cast<std::size_t>(number), part);
  }
  if (parts.size() == contributions.size()) return std::nullopt;
  return Demand(demand.collective(), demand.size_bytes(), demand.num_gpus(), std::move(parts),
                demand.chunks_per_contribution(), demand.shape());
}

}  // namespace rondo
