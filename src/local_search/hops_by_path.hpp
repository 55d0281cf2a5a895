#pragma once

#include <map>
#include <span>
#include <vector>

#include "rondo/core/transfers.hpp"
#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// The hops of a plan space by the links of their paths. The space may grow by this alone.
class HopsByPath {
 public:
  explicit HopsByPath(PlanSpace& space);

  /// The hop over these links, added to the space where it has none.
  int of(const std::vector<LinkId>& path);
  /// Adds the hop unless the space has one over the same links.
  void add(const Hop& hop);

 private:
  PlanSpace& space_;
  std::map<std::vector<LinkId>, int> known_;
};

std::vector<LinkId> path_of(const Hop& hop);

/// The links that the delivery's sends cross, in order.
std::vector<LinkId> path_of(const Delivery& delivery, const Transfers& transfers,
                            std::span<const Send> sends);

}  // namespace rondo
