#pragma once

#include <vector>

#include "list_rules.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo {

struct ListedTransfer {
  Move move;
  double arrival_us;
};

/// The schedule of `transfers`, in the order of their starts, without relays that turned out to be needless.
/// `sends`: theirs, transfer by transfer, one a link of its hop. Every GPU receives a chunk at most once.
Schedule useful_sends(const HopTable& hops, const Demand& demand,
                      const std::vector<ListedTransfer>& transfers, const std::vector<Send>& sends);

}  // namespace rondo
