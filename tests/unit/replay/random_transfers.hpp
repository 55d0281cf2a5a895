#pragma once

#include <limits>
#include <vector>

#include "by_hand.hpp"
#include "rondo/core/random.hpp"

namespace rondo {

/// Chunks that go together from the GPU that has them, over one link or through the switch to several GPUs.
struct Group {
  std::vector<int> chunks;
  std::vector<int> links;
  std::vector<double> offsets_us;  ///< per link: when what starts at 0 enters it
  double bytes = 0;
  double rate_GBps = std::numeric_limits<double>::quiet_NaN();  ///< absent: the least bandwidth
  bool is_numbered = true;
  double start_us = 0;
  double duration_us = 0;
};

struct Scenario {
  TopologyData fabric;
  std::vector<Contribution> parts;
  std::vector<Group> groups;

  const Link& link(int l) const { return fabric.links[static_cast<std::size_t>(l)]; }
  double message_us(const Group& g) const;
  double least_GBps(const Group& g) const;
  /// Of link l at time t.
  double bandwidth_at(int l, double t) const;
  /// Those of each group follow each other; its number is its position.
  std::vector<Send> sends() const;
  void append(const Group& g, int number, std::vector<Send>& all) const;
};

/// Valid transfers of data among four GPUs over direct links and a switch, each as soon as it fits. Either
/// rates and message costs differ, or bandwidth changes.
Scenario random_transfers(Random& random, bool with_messages, bool with_steps);

}  // namespace rondo
