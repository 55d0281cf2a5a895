#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "rondo/decomp/free_group.hpp"
#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// Symmetric plans of an AllGather of equal parts: all automorphisms of a group that acts freely apply to
/// each transfer at the same time. Its representatives make the plan: the chunks of one GPU of each orbit. A
/// link that one of their transfers keeps busy is busy with all links of its orbit, each with one image; so
/// the representative of the orbit stands for them, and plans of representatives on those links are plans
/// like others, of as many times fewer transfers as the group has elements.
class OrbitPlans {
 public:
  /// `demand`: one contribution a GPU, for all others. `topology` must outlive it.
  OrbitPlans(const Topology& topology, const Demand& demand, FreeGroup group, int concurrency);

  std::size_t num_automorphisms() const { return group_.order(); }
  /// For plans of the representatives in one chunk a contribution: hops over the links that stand for theirs,
  /// but for hops over two links of one orbit, whose images would meet. Switches do not copy there.
  const PlanSpace& space() const { return space_; }

  /// What the representatives do in a schedule of the whole demand in so many chunks. That need not be
  /// symmetric, so that it is an order to be placed anew. Nothing where switches copy, where it takes other
  /// hops, or where it is no plan.
  std::optional<PlannedOrder> folded(const Schedule& schedule, int chunks) const;
  /// The schedule of the whole demand: all images of a plan in so many chunks.
  Schedule unfolded(const TransferPlan& plan, int chunks) const;

 private:
  const Topology& topology_;
  Demand demand_;
  FreeGroup group_;
  std::vector<std::size_t> contribution_of_;  ///< per GPU, in the whole demand
  PlanSpace crossed_;                         ///< the same hops over their own links
  PlanSpace space_;
};

}  // namespace rondo
