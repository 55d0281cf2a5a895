#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rondo/core/collective.hpp"

/// The chunks of a `rondo-schedule` file (FORMATS.md 3), column by column under the file's names.
namespace rondo {

/// One list of numbers a row: the offsets into `value`, one more than there are rows, and all values.
struct RaggedColumn {
  std::vector<std::int64_t> index = {};
  std::vector<std::int64_t> value = {};

  bool is_absent() const { return index.empty(); }
  void add_row(const std::vector<std::int64_t>& row);
  void add_row(std::span<const GpuId> row);
  std::span<const std::int64_t> row(std::size_t i) const;
};

/// Partial sums that GPUs hold at time 0.
struct HeldColumns {
  std::vector<std::int64_t> chunk = {};
  std::vector<std::int64_t> gpu = {};
  RaggedColumn sources = {};
};

struct ChunkColumns {
  std::vector<std::int64_t> origin = {};
  RaggedColumn destinations = {};
  std::vector<double> ready_us = {};          ///< empty: all 0
  RaggedColumn sources = {};                  ///< absent: the origins alone
  std::vector<double> sources_ready_us = {};  ///< one a value of `sources`; empty: `ready_us`
  std::vector<std::int64_t> reduce = {};      ///< 0 or 1; empty: all 0
  std::vector<std::int64_t> tenant = {};      ///< empty: all 0
  std::vector<double> priority = {};          ///< empty: all 1
  HeldColumns held = {};                      ///< no rows: nothing is held
};

/// Columns that say nothing but their default stay empty.
ChunkColumns chunk_columns_of(const Demand& demand);
/// The same without the values of `destinations`, which take more memory than all the rest.
ChunkColumns columns_without_destinations(const Demand& demand);

/// A contribution a chunk. `chunk_bytes`: one value for all, or one a chunk. Throws Error(bad_data) for
/// lengths that disagree and numbers out of range.
std::vector<Contribution> to_contributions(const ChunkColumns& chunks, const std::vector<double>& chunk_bytes,
                                           std::size_t num_gpus);

}  // namespace rondo
