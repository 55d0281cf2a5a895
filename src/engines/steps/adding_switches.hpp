#pragma once

#include <optional>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/ids.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Per link, how long it is kept by what has been planned, in whole or in part: what goes slowly over part of
/// a link goes beside others as slow, and leaves other links to what is faster.
using BusyLinks = std::vector<double>;

/// The most that a link is kept once `hop` takes `bytes` more, of those links that it takes the most of: over
/// others more can go at the same time.
double load_with(const BusyLinks& loads_us, const Hop& hop, double bytes);
void add_load(BusyLinks& loads_us, const Hop& hop, double bytes);

/// Cut-through switches that add and copy, as far as links join them (SHARP: Graham et al., 2016). What GPUs
/// send to such a joint in one transfer is added up on its way to one switch, the core, and copied from
/// there.
class AddingSwitches {
 public:
  explicit AddingSwitches(const Topology& topology);

  int num_joints() const { return static_cast<int>(joints_.size()); }
  bool has(int joint, NodeId n) const { return joints_[index(joint)].has[n.index()] != 0; }
  /// Whether links lead from the GPU to the joint, and from the joint to it.
  bool may_send(int joint, GpuId g) const;
  bool may_take(int joint, GpuId g) const;
  /// How long such a link is kept, of several that which is free first.
  double busy_us(int joint, GpuId g, bool sends, const BusyLinks& loads_us) const;

  /// From `sources` through the joint to `destinations`.
  struct Joined {
    int joint = 0;
    std::vector<GpuId> sources = {};
    std::vector<GpuId> destinations = {};
    std::vector<int> cores = {};  ///< of the joint, those over which it takes the least latency
    int first = 0;                ///< of the cores that are tried: that of the last transfer
  };
  /// Nothing where the joint does not have all of them.
  std::optional<Joined> joined(int joint, std::vector<GpuId> sources, std::vector<GpuId> destinations) const;

  /// One transfer. Those farther from the core start earlier, so that all meet there. The core is that of
  /// the last one, behind which links are free in turn, unless the busiest link is kept for longer by it.
  Hop transfer(Joined& joined, double bytes, const BusyLinks& loads_us) const;

 private:
  /// Per node, how many links of the joint are between it and the core.
  struct Core {
    std::vector<int> up;
    std::vector<int> down;
  };
  struct Joint {
    std::vector<char> has;  ///< per node
    std::vector<Core> cores;
  };
  struct Way;

  std::vector<int> levels(const Joint& joint, NodeId core, bool up) const;
  LinkId next_link(const std::vector<int>& levels, NodeId n, bool up, const BusyLinks& loads_us) const;
  double extend(Way& way, const std::vector<int>& levels, NodeId n, bool up, const BusyLinks& loads_us) const;
  std::optional<Hop> over(const Core& core, const Joined& joined, const BusyLinks& loads_us) const;

  const Topology& topology_;
  std::vector<Joint> joints_;
};

}  // namespace rondo
