#pragma once

#include <vector>

#include "rondo/core/ids.hpp"

namespace rondo {

/// From one GPU of an out-tree to others: over one link, or through switches, which may copy as well.
struct TreeTransfer {
  int from = -1;       ///< the transfer of the tree that brings what is sent; -1: the root has it
  int from_link = -1;  ///< its link, by position, behind which the sender stands
  std::vector<LinkId> links = {};
  std::vector<int> parents = {};  ///< per link the position of the one before it, -1 at the sender
};

/// An out-tree from where data is to all that want it.
struct OutTree {
  double weight = 0;                         ///< the share of the data that takes it
  std::vector<TreeTransfer> transfers = {};  ///< one comes after that which it rests on
};

}  // namespace rondo
