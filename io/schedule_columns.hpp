#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/schedule.hpp"

/// What a `rondo-schedule` file holds (FORMATS.md 3), column by column under the file's names, as JSON and
/// HDF5 share it. Columns that come from a file are not trusted: to_proven_schedule checks them.
namespace rondo {

struct ChunkColumns {
  std::vector<std::int64_t> origin;
  std::vector<std::int64_t>
      destinations_index;  ///< offsets into destinations_value, one more than there are chunks
  std::vector<std::int64_t> destinations_value;
  std::vector<double> ready_us;  ///< empty: all 0
};

struct SendColumns {
  std::vector<std::int64_t> chunk;
  std::vector<std::int64_t> link;
  std::vector<double> start_us;
  std::vector<double> end_us;
  std::vector<double> arrival_us;
  std::vector<std::int64_t> op;
};

struct ScheduleColumns {
  std::string producer;
  std::string collective;
  double size_bytes = 0;
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

/// Checks lengths, ranges, finiteness, the order of the sends and that algorithm bandwidth and gap follow
/// from the other figures. Throws Error(bad_data), and Error(unavailable) for sends that reduce.
ProvenSchedule to_proven_schedule(Topology topology, const ScheduleColumns& columns);

}  // namespace rondo
