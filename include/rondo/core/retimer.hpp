#pragma once

#include <memory>

#include "rondo/core/retiming.hpp"

namespace rondo {

/// retimed() of the same sends at several sizes: which of them are one transfer, and over which hop, is found
/// once.
class Retimer {
 public:
  /// Keeps references to what `before` refers to and to `topology`. `demand` in any bytes.
  Retimer(const TimedSends& before, const Topology& topology, const Demand& demand);
  Retimer(Retimer&&) noexcept;
  ~Retimer();

  Schedule at(const Demand& demand, int concurrency = kAnyConcurrency);

 private:
  struct Transfers;
  TimedSends before_;
  const Topology& topology_;
  std::unique_ptr<Transfers> transfers_;
};

}  // namespace rondo
