#pragma once

#include <cstddef>
#include <vector>

#include "rondo/core/chunk_range.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo {

/// A schedule that is kept in few words, such as that of symmetric fabrics as moves of representatives, and
/// written out for some chunks at a time.
class FoldedSchedule {
 public:
  virtual ~FoldedSchedule() = default;

  virtual std::size_t num_sends() const = 0;
  virtual std::size_t most_sends_on_a_link() const = 0;
  virtual double finish_us() const = 0;
  /// All sends of these chunks, in the order of schedules. They have no transfer numbers and no rates.
  virtual std::vector<Send> sends_of(ChunkRange chunks) const = 0;
};

}  // namespace rondo
