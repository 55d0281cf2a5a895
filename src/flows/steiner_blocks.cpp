#include "steiner_blocks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace rondo {
namespace {

/// Ready times beyond so many are taken for the next earlier ones.
constexpr std::size_t kMostPeriods = 8;

using BlockKey = std::tuple<GpuId, std::vector<GpuId>, double>;

}  // namespace

std::vector<SteinerBlock> steiner_blocks(const Demand& demand) {
  std::map<BlockKey, SteinerBlock> blocks;
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    const Contribution& c = demand.contributions()[i];
    SteinerBlock& block = blocks[{c.origin, c.destinations, c.ready_us}];
    block.origin = c.origin;
    block.destinations = c.destinations;
    block.ready_us = c.ready_us;
    block.bytes += c.bytes;
    block.contributions.push_back(i);
  }
  std::vector<SteinerBlock> result;
  for (auto& [ends, block] : blocks) result.push_back(std::move(block));
  return result;
}

std::vector<double> period_begins(const std::vector<SteinerBlock>& blocks) {
  std::set<double> times{0};
  for (const SteinerBlock& block : blocks) times.insert(block.ready_us);
  std::vector<double> from_us(times.begin(), times.end());
  while (from_us.size() > kMostPeriods) {
    std::size_t nearest = 1;
    for (std::size_t p = 2; p < from_us.size(); ++p) {
      if (from_us[p] - from_us[p - 1] < from_us[nearest] - from_us[nearest - 1]) nearest = p;
    }
    from_us.erase(from_us.begin() + static_cast<std::ptrdiff_t>(nearest));
  }
  return from_us;
}

bool takes_steiner_trees(const Demand& demand) {
  if (demand.kind() != DemandKind::multicast) return false;
  const auto& contributions = demand.contributions();
  const std::size_t num_members =
      demand.shape().group.empty() ? demand.num_gpus() : demand.shape().group.size();
  return !demand.shape().is_plain() || !demand.uniform_chunk_bytes() ||
         std::ranges::any_of(contributions, [&](const Contribution& c) {
           return c.ready_us > 0 || c.destinations.size() + 1 < num_members;
         });
}

double steiner_work(const Topology& topology, const Demand& demand) {
  const std::vector<SteinerBlock> blocks = steiner_blocks(demand);
  double destinations = 0;
  for (const SteinerBlock& block : blocks) destinations += static_cast<double>(block.destinations.size());
  return destinations * static_cast<double>(topology.num_links() * period_begins(blocks).size());
}

}  // namespace rondo
