#include "rondo/flows/route_table.hpp"

#include <algorithm>

namespace rondo {

std::map<GpuId, std::vector<std::size_t>> contributions_by_origin(const Demand& demand) {
  std::map<GpuId, std::vector<std::size_t>> positions;
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    positions[demand.contributions()[i].origin].push_back(i);
  }
  return positions;
}

RouteBuilder::RouteBuilder(const Topology& topology, const Demand& demand) : topology_(topology) {
  table_.hops = HopTable(topology).hops();
  table_.of_contribution.resize(demand.contributions().size());
  for (std::size_t h = 0; h < table_.hops.size(); ++h) {
    std::vector<LinkId> path;
    for (const HopLink& part : table_.hops[h].links) path.push_back(part.link);
    hop_of_path_.emplace(std::move(path), static_cast<int>(h));
  }
}

int RouteBuilder::hop_over(const std::vector<LinkId>& path) {
  const auto [entry, is_new] = hop_of_path_.try_emplace(path, static_cast<int>(table_.hops.size()));
  if (is_new) table_.hops.push_back(make_hop(topology_, path));
  return entry->second;
}

void RouteBuilder::add(std::size_t contribution, const std::vector<LinkId>& path, double bytes,
                       const std::vector<double>& start_us) {
  Route route{{}, bytes};
  std::vector<LinkId> hop;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (hop.empty() && !start_us.empty()) route.start_us.push_back(start_us[i]);
    hop.push_back(path[i]);
    if (!topology_.is_gpu(topology_.link(path[i]).dst)) continue;
    route.hops.push_back(hop_over(hop));
    hop.clear();
  }
  table_.of_contribution[contribution].push_back(std::move(route));
}

}  // namespace rondo
