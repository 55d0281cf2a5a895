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

/// Messages from rank to rank, this one included. Messages from one rank to
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
};

/// Collective. Counts of bytes are at most 2^31 - 1.
std::unique_ptr<Exchange> make_exchange(const Communicator& communicator);

}  // namespace rondo
