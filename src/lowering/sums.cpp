#include "sums.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rondo::lowering {

Sums::Sums(const std::vector<Delivery>& deliveries, const Layout& layout)
    : deliveries_(deliveries), phase_(deliveries.size(), -1), clears_(deliveries.size(), 0) {
  struct History {
    std::vector<int> roots = {}, departures = {};
  };
  std::map<std::pair<ChunkId, GpuId>, History> histories;
  std::vector<int> adds_next(deliveries.size(), -1);  // the arrival that adds to this one
  for (int t = 0; t < static_cast<int>(deliveries.size()); ++t) {
    const Delivery& delivery = deliveries[index(t)];
    histories[{delivery.chunk, delivery.src}].departures.push_back(t);
    if (delivery.before >= 0) {
      adds_next[index(delivery.before)] = t;
    } else {
      histories[{delivery.chunk, delivery.dst}].roots.push_back(t);
    }
  }
  for (auto& [place, history] : histories) {
    std::ranges::stable_sort(history.roots, {}, [&](int t) { return deliveries[index(t)].arrival_us; });
    std::vector<int> arrivals;
    for (const int root : history.roots) {
      for (int t = root; t >= 0; t = adds_next[index(t)]) arrivals.push_back(t);
    }
    add_history(arrivals, history.departures, layout);
  }
}

void Sums::add_history(const std::vector<int>& arrivals, const std::vector<int>& departures,
                       const Layout& layout) {
  std::map<int, std::vector<int>> sent_after;  // departures by the arrival that they include last
  for (const int t : departures) sent_after[deliveries_[index(t)].cause].push_back(t);
  const std::size_t first_phase = phases_.size();
  const auto depart = [&](int cause) {
    const auto sent = sent_after.find(cause);
    if (sent == sent_after.end()) return false;
    phases_.back().departures = sent->second;
    for (const int t : sent->second) phase_[index(t)] = static_cast<int>(phases_.size()) - 1;
    return true;
  };
  phases_.push_back({});
  bool ended = depart(-1);
  for (const int t : arrivals) {
    const bool is_root = deliveries_[index(t)].before < 0;
    if (ended || (is_root && !phases_.back().arrivals.empty())) phases_.push_back({});
    Phase& phase = phases_.back();
    if (phase.arrivals.empty()) phase.begins_with_root = is_root;
    phase.arrivals.push_back(t);
    ended = depart(t);
  }

  const int any = departures.empty() ? -1 : departures.front();
  const int chunk = any >= 0 ? deliveries_[index(any)].chunk.value : -1;
  const int gpu = any >= 0 ? deliveries_[index(any)].src.value : -1;
  for (std::size_t p = first_phase; p < phases_.size(); ++p) {
    Phase& phase = phases_[p];
    const bool is_last = p + 1 == phases_.size();
    if (!is_last) {
      phase.next = static_cast<int>(p) + 1;
      // What a GPU holds at first is sent from its input, and gathered elsewhere unless both are one memory.
      phase.clashes_with_next =
          !phase.arrivals.empty() || (any >= 0 && layout.home(chunk, gpu) == layout.wanted_at(chunk, gpu));
    }
    if (phase.departures.size() != 1) continue;
    const bool is_overwritten =
        !is_last && deliveries_[index(phases_[p + 1].arrivals.front())].op == SendOp::copy;
    clears_[index(phase.departures.front())] =
        is_overwritten || (is_last && !layout.wanted_at(chunk, gpu)) ? 1 : 0;
  }
}

std::vector<Precedence> Sums::order(const std::vector<int>& batch_of) const {
  std::vector<Precedence> all;
  const auto events = [&](auto first, auto last, bool are_arrivals) {
    std::vector<Event> list;
    for (; first != last; ++first)
      list.push_back({.batch = batch_of[index(*first)], .is_arrival = are_arrivals});
    return list;
  };
  const auto arrivals = [&](const Phase& phase) {
    return events(phase.arrivals.begin(), phase.arrivals.end(), true);
  };
  for (const Phase& phase : phases_) {
    if (phase.begins_with_root && phase.arrivals.size() > 1) {
      all.push_back({arrivals({.arrivals = {phase.arrivals.front()}}),
                     events(phase.arrivals.begin() + 1, phase.arrivals.end(), true)});
    }
    if (phase.next < 0 || !phase.clashes_with_next) continue;
    all.push_back({phase.departures.empty() ? arrivals(phase)
                                            : events(phase.departures.begin(), phase.departures.end(), false),
                   arrivals(phases_[index(phase.next)])});
  }
  return all;
}

}  // namespace rondo::lowering
