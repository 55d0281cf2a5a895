#pragma once

#include <limits>
#include <vector>

#include "rondo/core/insertion_timetable.hpp"
#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// What is on its way already, and where switches may copy it to more GPUs while it passes.
class SwitchCopies {
 public:
  struct Branch {
    int hop = -1;                ///< -1: none
    std::size_t first_link = 0;  ///< of the hop, that the copy needs for itself
    double start_us = 0;         ///< of the transfer that is copied
    double arrival_us = std::numeric_limits<double>::infinity();
    std::size_t tree = 0;
  };

  /// `space` must outlive it, and have all its hops by now.
  explicit SwitchCopies(const PlanSpace& space);

  /// The copy that brings the chunk to `to` first, of those for which links have room at that moment.
  Branch soonest(ChunkId chunk, GpuId to, const InsertionTimetable& timetable) const;
  /// Takes note of a transfer by itself.
  void begin(ChunkId chunk, int hop, double start_us);
  /// Reserves what the copy needs, and adds its sends.
  void add(ChunkId chunk, const Branch& branch, InsertionTimetable& timetable, std::vector<Send>& sends);

 private:
  struct Tree {
    double start_us;
    std::vector<int> hops;  ///< of one source
  };

  const Hop& hop(int h) const { return space_.hops[static_cast<std::size_t>(h)]; }
  /// The first link of `h` that is not in the tree; 0 where it may not be copied from there.
  std::size_t branches_at(const Tree& tree, int h) const;

  const PlanSpace& space_;
  std::vector<std::vector<Tree>> trees_;  ///< per chunk
  std::vector<std::vector<int>> hops_;    ///< per source and destination
};

}  // namespace rondo
