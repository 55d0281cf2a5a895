#include "shared_counter.hpp"

#include <algorithm>
#include <cstdint>

#include "mpi_check.hpp"

namespace rondo {
namespace {

/// Of an attribute: called when its communicator is freed.
int forget(MPI_Comm, int, void* counter, void*) {
  delete static_cast<SharedCounter*>(counter);
  return MPI_SUCCESS;
}

}  // namespace

SharedCounter* SharedCounter::of(const Communicator& communicator) {
  if (communicator.size() == 1 || communicator.mpi_communicator() == nullptr) return nullptr;
  const MPI_Comm mpi = *static_cast<const MPI_Comm*>(communicator.mpi_communicator());
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &made, nullptr), "MPI_Comm_create_keyval");
    return made;
  }();
  void* known = nullptr;
  int is_there = 0;
  check(MPI_Comm_get_attr(mpi, key, &known, &is_there), "MPI_Comm_get_attr");
  if (is_there == 0) {
    known = new SharedCounter(mpi);
    check(MPI_Comm_set_attr(mpi, key, known), "MPI_Comm_set_attr");
  }
  auto* counter = static_cast<SharedCounter*>(known);
  return counter->window_ == MPI_WIN_NULL ? nullptr : counter;
}

/// Without a window where no node has two ranks, or one has no shared memory to give.
SharedCounter::SharedCounter(MPI_Comm communicator) {
  int rank = 0;
  int size = 1;
  check(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  check(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node_),
        "MPI_Comm_split_type");
  check(MPI_Comm_set_errhandler(node_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_size(node_, &ranks_of_node_), "MPI_Comm_size");
  int node = rank;
  check(MPI_Bcast(&node, 1, MPI_INT, 0, node_), "MPI_Bcast");
  node_of_rank_.resize(static_cast<std::size_t>(size));
  check(MPI_Allgather(&node, 1, MPI_INT, node_of_rank_.data(), 1, MPI_INT, communicator), "MPI_Allgather");

  void* memory = nullptr;
  int own_rank = 0;
  check(MPI_Comm_rank(node_, &own_rank), "MPI_Comm_rank");
  const MPI_Aint bytes = own_rank == 0 ? sizeof(std::uint64_t) : 0;
  int least_and_most[2] = {ranks_of_node_, -ranks_of_node_};
  if (MPI_Win_allocate_shared(bytes, sizeof(std::uint64_t), MPI_INFO_NULL, node_, &memory, &window_) !=
      MPI_SUCCESS) {
    window_ = MPI_WIN_NULL;
    least_and_most[0] = 0;
  }
  check(MPI_Allreduce(MPI_IN_PLACE, least_and_most, 2, MPI_INT, MPI_MIN, communicator), "MPI_Allreduce");
  const bool is_of_use = least_and_most[0] > 0 && -least_and_most[1] > 1;
  if (window_ != MPI_WIN_NULL && !is_of_use) MPI_Win_free(&window_);
  if (window_ == MPI_WIN_NULL) return;
  check(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
  if (own_rank == 0) *static_cast<std::uint64_t*>(memory) = 0;
  check(MPI_Win_sync(window_), "MPI_Win_sync");
  check(MPI_Barrier(node_), "MPI_Barrier");
  check(MPI_Win_sync(window_), "MPI_Win_sync");
}

SharedCounter::~SharedCounter() {
  if (window_ != MPI_WIN_NULL) {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  MPI_Comm_free(&node_);
}

std::size_t SharedCounter::draw() {
  const std::uint64_t one = 1;
  std::uint64_t drawn = 0;
  check(MPI_Fetch_and_op(&one, &drawn, MPI_UINT64_T, 0, 0, MPI_SUM, window_), "MPI_Fetch_and_op");
  check(MPI_Win_flush(0, window_), "MPI_Win_flush");
  return static_cast<std::size_t>(drawn);
}

void SharedCounter::deal(std::size_t count, const std::function<void(std::size_t number)>& take) {
  for (std::size_t number = draw() - first_; number < count; number = draw() - first_) take(number);
  // Each rank has drawn one number that was too high.
  first_ += count + static_cast<std::size_t>(ranks_of_node_);
}

}  // namespace rondo
