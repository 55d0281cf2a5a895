#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rondo/parallel/communicator.hpp"

namespace rondo::profile {

/// `messages` of `bytes` each from one rank to another, all handed over at once; the receiver answers with
/// one byte when it has all of them.
struct Flow {
  int from = 0;
  int to = 0;
  int messages = 1;
  std::int64_t bytes = 1;
};

/// Flows that start together. One flow alone is repeated by its two ranks as they come; several start
/// together each time.
struct Round {
  std::vector<Flow> flows;
  int repetitions = 1;
};

/// What moves messages and tells how long it took: the only thing that the profiler knows of a network.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual int size() const = 0;
  /// Collective. Microseconds from the start of a flow to its answer, by its sender's clock:
  /// [round][flow][repetition], the same on every rank.
  virtual std::vector<std::vector<std::vector<double>>> time_us(const std::vector<Round>& rounds) = 0;
};

/// Messages of MPI between the ranks of `communicator`, which has to outlive it. Throws Error(usage) for one
/// rank.
std::unique_ptr<Wire> make_mpi_wire(const Communicator& communicator);

}  // namespace rondo::profile
