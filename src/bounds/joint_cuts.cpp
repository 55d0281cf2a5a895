#include "rondo/bounds/joint_cuts.hpp"

#include <algorithm>
#include <utility>

#include "joint_program.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

/// Beyond, setting up the program takes seconds: all pairs of nodes are looked at.
constexpr std::size_t kMostJointNodes = 320;
/// Ends tried.
constexpr int kMostJointEnds = 16;
/// Of the bound: the first step, by how much steps grow, and what one has to gain.
constexpr double kFirstJointStep = 2e-3;
constexpr double kJointStepGrowth = 4;
constexpr double kLeastJointMove = 5e-4;
/// Of what has been found, the best.
constexpr std::size_t kMostChecked = 4;

class JointCutsSearch {
 public:
  JointCutsSearch(const Topology& topology, const Demand& demand, const Symmetry& symmetry,
                  const Solver& solver, double least_us, const Deadline& deadline)
      : topology_(topology),
        demand_(demand),
        deadline_(deadline),
        program_(topology, demand, symmetry, solver, deadline),
        least_us_(least_us),
        proven_us_(least_us) {}

  std::optional<LowerBound> run() {
    double step = kFirstJointStep;
    double refused_us = kInfinity;
    double us = proven_us_ * (1 + step);
    for (int i = 0; i < kMostJointEnds && program_.has_work_left() && !deadline_.is_over(); ++i) {
      if (try_end(us)) {
        step *= kJointStepGrowth;
      } else {
        refused_us = us;
      }
      if (refused_us - proven_us_ < kLeastJointMove * proven_us_) break;
      us = refused_us < kInfinity ? 0.5 * (proven_us_ + refused_us) : proven_us_ * (1 + step);
    }
    return checked();
  }

 private:
  /// Whether it is proven, but for rounding, that nothing ends before `us`.
  bool try_end(double us) {
    const auto found = program_.solve(us);
    if (!found) return false;
    // Later, other ways may take other cuts.
    found_.push_back(program_.certificate(*found, found->grid));
    found_.push_back(program_.certificate(*found, program_.later(*found)));
    proven_us_ = us;
    return true;
  }

  /// The best that holds.
  std::optional<LowerBound> checked() {
    std::ranges::stable_sort(found_, std::ranges::greater{},
                             [](const JointCutsCertificate& joint) { return joint.prices.until_us; });
    if (found_.size() > kMostChecked) found_.resize(kMostChecked);
    for (JointCutsCertificate& joint : found_) {
      if (joint.prices.until_us <= least_us_) break;
      try {
        sound_bound_of(topology_, demand_, joint);
      } catch (const Error&) {
        continue;
      }
      return LowerBound{joint.prices.until_us, std::move(joint)};
    }
    return std::nullopt;
  }

  const Topology& topology_;
  const Demand& demand_;
  const Deadline& deadline_;
  JointProgram program_;
  double least_us_;
  double proven_us_;
  std::vector<JointCutsCertificate> found_ = {};
};

}  // namespace

bool can_join_cuts(const Topology& topology, const Demand& demand) {
  const auto passes_on = [](const Node& node) { return node.kind != NodeKind::gpu && !node.multicast; };
  return demand.kind() == DemandKind::multicast && !demand.has_several_sources() &&
         !topology.has_bandwidth_steps() && std::ranges::any_of(topology.nodes(), passes_on);
}

std::optional<LowerBound> find_joint_cuts(const Topology& topology, const Demand& demand,
                                          const Symmetry& symmetry, const Solver& solver, double least_us,
                                          const Deadline& deadline) {
  if (!can_join_cuts(topology, demand) || topology.num_nodes() > kMostJointNodes) return std::nullopt;
  return JointCutsSearch(topology, demand, symmetry, solver, least_us, deadline).run();
}

}  // namespace rondo
