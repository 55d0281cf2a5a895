#include "wake_table.hpp"

#include <algorithm>

namespace rondo {

WakeTable::WakeTable(const Topology& topology, const HopTable& hops, const std::vector<double>& chunk_sizes)
    : hops_(topology.num_links()), offsets_us_(topology.num_links()) {
  for (std::size_t h = 0; h < hops.hops().size(); ++h) {
    for (const HopLink& part : hops.hops()[h].links) {
      auto& users = hops_[part.link.index()];
      if (users.empty() || users.back() != static_cast<int>(h)) users.push_back(static_cast<int>(h));
      for (const double bytes : chunk_sizes)
        offsets_us_[part.link.index()].push_back(part.offset_us_of(bytes));
    }
  }
  // When a link of a group falls idle, hops over the others of the group may start as well.
  const auto own_hops = hops_;
  const auto own_offsets = offsets_us_;
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    for (const LinkId l : group.links) {
      for (const LinkId other : group.links) {
        if (l == other) continue;
        auto append = [&](auto& to, const auto& from) {
          to[l.index()].insert(to[l.index()].end(), from[other.index()].begin(), from[other.index()].end());
        };
        append(hops_, own_hops);
        append(offsets_us_, own_offsets);
      }
    }
  }
  for (auto& offsets : offsets_us_) {
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  }
}

}  // namespace rondo
