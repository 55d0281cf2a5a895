#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// CPU time of this thread since it was made: what else the machine does has little influence.
class CpuStopwatch {
 public:
  double seconds() const { return now_s() - start_s_; }

 private:
  static double now_s() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  double start_s_ = now_s();
};

/// A step of a run on one rank: work that every rank would do, then parts that would be dealt, or talk.
struct WorkStep {
  struct Part {
    double estimate = 0;  ///< by which parts are dealt
    double cpu_s = 0;
    std::size_t count = 1;  ///< of such parts
    std::optional<std::size_t> kin = std::nullopt;
  };
  enum class Talk { none, gather, broadcast, reduce };

  double own_cpu_s = 0;  ///< since the step before
  std::vector<Part> parts = {};
  Talk talk = Talk::none;
  std::size_t bytes = 0;  ///< of the talk; each rank has all of them afterwards
};

/// One rank, and a log of what it does between what it would say to others, so that more ranks can be
/// replayed. map_parts() deals work, and log_even_parts() says what was dealt by other
/// means; all else would be done by every rank.
class RecordingCommunicator final : public Communicator {
 public:
  /// `inner` has one rank; throws Error(internal) otherwise.
  explicit RecordingCommunicator(const Communicator& inner);

  /// With the work since the last one as a step of its own.
  std::vector<WorkStep> steps() const;
  /// After the work that every rank would do before them.
  void add_parts(double own_cpu_s, std::vector<WorkStep::Part> parts) const;
  /// Since the last step or call.
  double take_own_cpu_s() const;

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void barrier() const override;
  Bytes broadcast(Bytes bytes, int root) const override;
  std::vector<Bytes> all_gather(const Bytes& bytes) const override;
  double max(double value) const override;
  double sum(double value) const override;
  std::vector<double> sum(std::vector<double> values) const override;
  const void* mpi_communicator() const override { return inner_.mpi_communicator(); }

 private:
  void add(WorkStep::Talk talk, std::size_t bytes) const;

  const Communicator& inner_;
  mutable CpuStopwatch since_;
  mutable std::vector<WorkStep> steps_;
};

/// The one that records, also behind one that measures; null where none does.
const RecordingCommunicator* recording(const Communicator& communicator);

/// Says that the work of this rank since the last step was its share of `count` parts of equal work; does
/// nothing where no log is kept.
void log_even_parts(const Communicator& communicator, std::size_t count);

/// The rank of every part: largest first, each to the rank with the least work so far (Graham's LPT rule),
/// and at equal work to the one with the fewest parts, then the lowest. `kin`, one a part or none at all:
/// parts of one number have work in common and go to one rank, unless that would leave ranks without work.
std::vector<int> deal_parts(const std::vector<double>& work_estimates, int ranks,
                            const std::vector<std::size_t>& kin = {});

/// Parts that one rank does in a row: a part, or those of one kin that are dealt to the same rank.
struct Bundle {
  int rank = 0;  ///< they are dealt to
  double work = 0;
  std::vector<std::size_t> parts = {};
};
/// By their first parts. `rank_of`: of deal_parts().
std::vector<Bundle> bundles_of(const std::vector<double>& work_estimates, const std::vector<int>& rank_of,
                               const std::vector<std::size_t>& kin);
/// The order in which ranks with common memory draw what was dealt to them together.
void largest_first(std::vector<Bundle>& bundles);

}  // namespace rondo
