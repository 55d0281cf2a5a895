#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// A counter in the memory that the ranks of one node have in common, from which each draws what it does
/// next: an atomic operation, for which no rank has to answer another.
class SharedCounter {
 public:
  /// Of this communicator, made by the first call, which is collective, and kept until it is freed. Null
  /// where no ranks have memory in common.
  static SharedCounter* of(const Communicator& communicator);

  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  ~SharedCounter();

  /// The node of every rank, as the lowest rank on it.
  const std::vector<int>& node_of_rank() const { return node_of_rank_; }
  /// Calls `take` with numbers below `count` until all are drawn: each goes to one rank of this node. All of
  /// them call it, with the same count, and synchronise before the next time. `take` does not throw.
  void deal(std::size_t count, const std::function<void(std::size_t number)>& take);

 private:
  explicit SharedCounter(MPI_Comm communicator);
  std::size_t draw();

  std::vector<int> node_of_rank_;
  MPI_Comm node_ = MPI_COMM_NULL;
  int ranks_of_node_ = 1;
  MPI_Win window_ = MPI_WIN_NULL;
  std::size_t first_ = 0;  ///< the counter when deal() begins
};

}  // namespace rondo
