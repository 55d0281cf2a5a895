#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chunk_columns.hpp"
#include "rondo/core/schedule.hpp"

/// What a `rondo-schedule` file holds (FORMATS.md 3), column by column under the file's names, as JSON and
/// HDF5 share it. Columns that come from a file are not trusted: to_proven_schedule checks them.
namespace rondo {

struct SendColumns {
  std::vector<std::int64_t> chunk;
  std::vector<std::int64_t> link;
  std::vector<double> start_us;
  std::vector<double> end_us;
  std::vector<double> arrival_us;
  std::vector<std::int64_t> op;
  std::vector<std::int64_t> transfer = {};  ///< -1 for none; empty: all -1
  std::vector<double> rate_GBps = {};       ///< NaN for none; empty: all NaN
};

struct ScheduleColumns {
  int version = 1;  ///< for files to be written
  std::string producer;
  std::string collective;
  double size_bytes = 0;
  CollectiveShape shape;
  bool uniform_chunk_bytes = true;
  std::vector<double> chunk_bytes;  ///< one value where uniform, else one a chunk
  ChunkColumns chunks;
  SendColumns sends;
  double finish_us = 0;
  std::optional<double> algorithm_bandwidth_GBps;
  std::optional<LowerBound> lower_bound;
  std::optional<double> gap;
};

/// The schedule's sends have to be in canonical order.
ScheduleColumns to_columns(const ProvenSchedule& proven);
/// The same without `sends` and the values of `chunks.destinations`.
ScheduleColumns short_columns(const ProvenSchedule& proven);

/// Checks lengths, ranges, finiteness, the order of the sends and that algorithm bandwidth and gap follow
/// from the other figures. Throws Error(bad_data).
ProvenSchedule to_proven_schedule(Topology topology, const ScheduleColumns& columns);

}  // namespace rondo
