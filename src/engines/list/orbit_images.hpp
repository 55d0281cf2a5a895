#pragma once

#include <memory>
#include <vector>

#include "orbit_hops.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/folded_schedule.hpp"

namespace rondo {

/// What moves of representatives refer to.
struct OrbitFabric {
  std::shared_ptr<const Topology> topology;
  FreeGroup group;
  OrbitHops hops;  ///< refers to `group`

  OrbitFabric(std::shared_ptr<const Topology> fabric, FreeGroup free_group, std::size_t max_hops)
      : topology(std::move(fabric)), group(std::move(free_group)), hops(*topology, group, max_hops) {}
};

/// The images of moves under all automorphisms of a group. The chunk of a move is numbered as the receiver's
/// representative sees it: (o * chunks + k) * order + e is the k-th chunk of element e of orbit o.
class OrbitImages final : public FoldedSchedule {
 public:
  OrbitImages(std::shared_ptr<const OrbitFabric> fabric, const std::vector<Move>& moves,
              const Demand& demand);

  std::size_t num_sends() const override { return parts_.size() * fabric_->group.order(); }
  std::size_t most_sends_on_a_link() const override;
  double finish_us() const override { return finish_us_; }
  std::vector<Send> sends_of(ChunkRange chunks) const override;

 private:
  /// A move on one link of its hop.
  struct Part {
    double start_us;
    double end_us;
    double arrival_us;
    LinkId link;  ///< where the sender is the representative
    int q;        ///< k-th chunk of orbit o: o * chunks + k
    int inverse;  ///< origin's element times this is the sender's
  };

  std::shared_ptr<const OrbitFabric> fabric_;
  const Demand demand_;
  std::vector<Part> parts_;  ///< by start
  double finish_us_ = 0;
};

}  // namespace rondo
