#include "link_copies.hpp"

#include <fmt/format.h>

namespace rondo {

std::vector<SharedBandwidth> shared_by_copies(const Topology& topology,
                                              const std::vector<std::vector<LinkId>>& copies) {
  std::vector<SharedBandwidth> groups;
  for (std::size_t l = 0; l < copies.size(); ++l) {
    if (copies[l].size() > 1)
      groups.push_back({fmt::format("link {}", l), copies[l], topology.links()[l].bandwidth_GBps});
  }
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    SharedBandwidth image{group.name, {}, group.bandwidth_GBps};
    for (const LinkId l : group.links)
      image.links.insert(image.links.end(), copies[l.index()].begin(), copies[l.index()].end());
    if (!image.links.empty()) groups.push_back(std::move(image));
  }
  return groups;
}

}  // namespace rondo
