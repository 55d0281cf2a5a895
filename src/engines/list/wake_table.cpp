#include "wake_table.hpp"

#include "rondo/core/make_set.hpp"

namespace rondo {

void WakeTable::add(std::size_t link, double offset_us, int receiver) {
  links_[link].offsets_us.push_back(offset_us);
  links_[link].receivers.push_back(receiver);
}

void WakeTable::append(Waiting& to, const Waiting& from) {
  to.offsets_us.insert(to.offsets_us.end(), from.offsets_us.begin(), from.offsets_us.end());
  to.receivers.insert(to.receivers.end(), from.receivers.begin(), from.receivers.end());
}

void WakeTable::share(std::span<const std::size_t> links) {
  Waiting all;
  for (const std::size_t l : links) append(all, links_[l]);
  for (const std::size_t l : links) shared_.emplace_back(l, all);
}

void WakeTable::finish() {
  for (const auto& [link, waiting] : shared_) append(links_[link], waiting);
  shared_.clear();
  for (Waiting& waiting : links_) {
    make_set(waiting.offsets_us);
    make_set(waiting.receivers);
  }
}

WakeTable make_wake_table(const Topology& topology, const HopTable& hops,
                          std::span<const double> chunk_bytes) {
  WakeTable wakes(topology.num_links());
  for (const Hop& hop : hops.hops()) {
    for (const HopLink& part : hop.links) {
      for (const double bytes : chunk_bytes)
        wakes.add(part.link.index(), part.offset_us_of(bytes), hop.dst.value);
    }
  }
  for (const SharedBandwidth& group : topology.shared_bandwidth()) {
    std::vector<std::size_t> links;
    for (const LinkId l : group.links) links.push_back(l.index());
    wakes.share(links);
  }
  wakes.finish();
  return wakes;
}

}  // namespace rondo
