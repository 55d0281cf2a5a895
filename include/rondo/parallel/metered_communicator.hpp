#pragma once

#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Time and volume of the exchange between ranks.
struct ExchangeFigures {
  double seconds = 0;  ///< on this rank, from when the last one was ready
  double bytes = 0;    ///< sent by all ranks together; 0 on one rank
};

/// Measures the exchange over another communicator. A barrier before every exchange keeps the wait for the
/// slowest rank out of the measured time.
class MeteredCommunicator final : public Communicator {
 public:
  explicit MeteredCommunicator(const Communicator& inner) : inner_(inner) {}

  const Communicator& inner() const { return inner_; }
  const ExchangeFigures& exchange() const { return exchange_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void barrier() const override { inner_.barrier(); }
  Bytes broadcast(Bytes bytes, int root) const override;
  std::vector<Bytes> all_gather(const Bytes& bytes) const override;
  double max(double value) const override;
  double sum(double value) const override;
  std::vector<double> sum(std::vector<double> values) const override;
  const void* mpi_communicator() const override { return inner_.mpi_communicator(); }

 private:
  template <class Talk>
  auto metered(Talk talk) const;
  void count(std::size_t bytes) const;

  const Communicator& inner_;
  mutable ExchangeFigures exchange_;
};

}  // namespace rondo
