#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hdf5_writer.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo {

/// Which columns the sends of a file have besides those that all have.
struct SendOptions {
  bool transfers = false;
  bool rates = false;
};

/// Writes the sends of a schedule, some at a time, as the group `sends` of a file (FORMATS.md 3). Never more
/// than a piece of each column is in memory as values, and the compressed pieces.
class SendWriter {
 public:
  SendWriter(const Hdf5GroupWriter& group, std::size_t num_sends, SendOptions options);

  /// The next ones, in the order of schedules.
  void add(std::span<const Send> sends);
  /// After the last ones.
  void finish();

 private:
  void write_piece(std::span<const Send> sends);
  template <class Value, class Of>
  void append(Hdf5ColumnAppender& column, std::span<const Send> sends, Of of);

  Hdf5ColumnAppender chunk_;
  Hdf5ColumnAppender link_;
  Hdf5ColumnAppender start_us_;
  Hdf5ColumnAppender end_us_;
  Hdf5ColumnAppender arrival_us_;
  Hdf5ColumnAppender op_;
  std::vector<Hdf5ColumnAppender> transfer_;   ///< one or none
  std::vector<Hdf5ColumnAppender> rate_GBps_;  ///< one or none
  std::vector<Send> left_;                     ///< less than a piece
};

}  // namespace rondo
