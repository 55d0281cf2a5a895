#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// A message that has arrived whole.
struct Arrival {
  int from = 0;  ///< rank
  Bytes bytes = {};
};

/// Messages from rank to rank, this one included, and MPI's collectives on bytes. Messages from one rank to
/// another arrive in the order in which they were sent.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Nonblocking.
  virtual void send(int rank, Bytes message) = 0;
  /// The next message that has arrived, if there is one. Nonblocking; call it often.
  virtual std::optional<Arrival> poll() = 0;

  /// Collective in its order, nonblocking: begins to add `values` over the ranks, element by element. At most
  /// one sum at a time.
  virtual void start_sum(std::vector<std::int64_t> values) = 0;
  /// The sums, once they are there.
  virtual std::optional<std::vector<std::int64_t>> finished_sum() = 0;

  /// Collective, blocking. All ranks pass the same number of bytes. MPI_Allgather: in rank order.
  virtual Bytes all_gather(const Bytes& bytes) const = 0;
  /// MPI_Alltoall: the i-th of as many equal pieces as there are ranks goes to rank i.
  virtual Bytes all_to_all(const Bytes& bytes) const = 0;
  /// MPI_Bcast. All ranks pass as many bytes as the root.
  virtual Bytes broadcast(Bytes bytes, int root) const = 0;
  /// MPI_Allreduce: sums of unsigned bytes, modulo 256.
  virtual Bytes sum_bytes(const Bytes& bytes) const = 0;
};

/// Collective. Counts of bytes are at most 2^31 - 1.
std::unique_ptr<Exchange> make_exchange(const Communicator& communicator);

}  // namespace rondo
