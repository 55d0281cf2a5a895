#include "sums_in_switches.hpp"

#include "rondo/core/time_slack.hpp"

namespace rondo {
namespace {

/// Times that are to be told apart differ by more than so many times what counts as equal.
constexpr double kNear = 4;

}  // namespace

bool SumsInSwitches::stores(const HopLink& part) const {
  return topology_.node(topology_.link(part.link).src).stores();
}

double SumsInSwitches::start_apart_us(const Hop& hop, ChunkId chunk, double bytes, double start_us) const {
  if (onward_us_.empty()) return start_us;
  for (bool moved = true; moved;) {
    moved = false;
    for (const HopLink& part : hop.links) {
      const auto others =
          stores(part) ? onward_us_.find({topology_.link(part.link).src, chunk}) : onward_us_.end();
      if (others == onward_us_.end()) continue;
      const double at_us = start_us + part.offset_us_of(bytes);
      const double near_us = kNear * time_slack_us(at_us);
      const auto met = others->second.lower_bound(at_us - near_us);
      if (met == others->second.end() || *met > at_us + near_us) continue;
      start_us += *met - at_us + 2 * near_us;
      moved = true;
    }
  }
  return start_us;
}

void SumsInSwitches::note(const Hop& hop, ChunkId chunk, double bytes, double start_us) {
  for (const HopLink& part : hop.links) {
    if (stores(part))
      onward_us_[{topology_.link(part.link).src, chunk}].insert(start_us + part.offset_us_of(bytes));
  }
}

}  // namespace rondo
