#include "hops_by_path.hpp"

#include <algorithm>

#include "rondo/core/index.hpp"

namespace rondo {

HopsByPath::HopsByPath(PlanSpace& space) : space_(space) {
  for (std::size_t h = 0; h < space.hops.size(); ++h)
    known_.emplace(path_of(space.hops[h]), static_cast<int>(h));
}

int HopsByPath::of(const std::vector<LinkId>& path) {
  auto known = known_.find(path);
  if (known == known_.end()) known = known_.emplace(path, space_.add(make_hop(*space_.topology, path))).first;
  return known->second;
}

void HopsByPath::add(const Hop& hop) {
  const auto [known, is_new] = known_.try_emplace(path_of(hop));
  if (is_new) known->second = space_.add(hop);
}

std::vector<LinkId> path_of(const Hop& hop) {
  std::vector<LinkId> path;
  for (const HopLink& part : hop.links) path.push_back(part.link);
  return path;
}

std::vector<LinkId> path_of(const Delivery& delivery, const Transfers& transfers,
                            std::span<const Send> sends) {
  std::vector<LinkId> path;
  for (int s = delivery.last_send; s >= 0; s = transfers.continued[index(s)])
    path.push_back(sends[index(s)].link);
  std::ranges::reverse(path);
  return path;
}

}  // namespace rondo
