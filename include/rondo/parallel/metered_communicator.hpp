#pragma once

#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// What ranks have said to each other.
struct ExchangeFigures {
  double seconds = 0;  ///< on this rank, from when the last one was ready
  double bytes = 0;    ///< that all ranks together gave away; 0 where there is one rank
};

/// Another communicator, with a count of what goes over it. Before every exchange the ranks meet, so that
/// waiting for the slowest does not count as exchange.
class MeteredCommunicator final : public Communicator {
 public:
  explicit MeteredCommunicator(const Communicator& inner) : inner_(inner) {}

  const ExchangeFigures& exchange() const { return exchange_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void barrier() const override { inner_.barrier(); }
  Bytes broadcast(Bytes bytes, int root) const override;
  std::vector<Bytes> all_gather(const Bytes& bytes) const override;
  double max(double value) const override;
  double sum(double value) const override;
  const void* mpi_communicator() const override { return inner_.mpi_communicator(); }

 private:
  template <class Talk>
  auto metered(Talk talk) const;
  void count(std::size_t bytes) const;

  const Communicator& inner_;
  mutable ExchangeFigures exchange_;
};

}  // namespace rondo
