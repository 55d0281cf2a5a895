#pragma once

#include <vector>

#include "batches.hpp"

namespace rondo::lowering {

/// What happens to the partial sums of a program, one after another: sends of what a GPU holds, and arrivals
/// that change it. Data that is only copied has arrivals and then sends.
class Sums {
 public:
  /// `deliveries` in order, causes first; it has to outlive this.
  Sums(const std::vector<Delivery>& deliveries, const Layout& layout);

  /// The arrivals at its source that `delivery` carries on, save those that an earlier send there carries
  /// too.
  const std::vector<int>& right_before(int delivery) const {
    return phases_[index(phase_[index(delivery)])].arrivals;
  }

  /// Whether nothing reads what `delivery` carries on at its source once it has left: no other send, no later
  /// addition, and its source does not want it.
  bool clears(int delivery) const { return clears_[index(delivery)] != 0; }

  /// The order that the memory of partial sums needs, besides `Batch::follows`.
  std::vector<Precedence> order(const std::vector<int>& batch_of) const;

 private:
  /// Arrivals of a chunk at a GPU that no send lies between, and the sends after them.
  struct Phase {
    std::vector<int> arrivals = {};
    std::vector<int> departures = {};
    bool begins_with_root = false;   ///< the first arrival writes what the others add to
    int next = -1;                   ///< the phase after it, of the same partial sum
    bool clashes_with_next = false;  ///< what is sent here is overwritten there
  };
  void add_history(const std::vector<int>& arrivals, const std::vector<int>& departures,
                   const Layout& layout);

  const std::vector<Delivery>& deliveries_;
  std::vector<Phase> phases_;
  std::vector<int> phase_;    ///< per delivery: the phase that it departs in
  std::vector<char> clears_;  ///< per delivery
};

}  // namespace rondo::lowering
