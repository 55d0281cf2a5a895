#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"

/// What a catalogue holds (FORMATS.md, "A catalogue").
namespace rondo::catalogue {

/// A collective on a fabric, among all GPUs or a group: everything but the size.
struct Series {
  std::string fabric;  ///< fingerprint() of the topology
  Collective collective = Collective::allgather;
  GpuId root{0};
  std::vector<GpuId> group = {};  ///< ascending; empty: all GPUs
  bool relays = true;             ///< whether GPUs outside the group may pass data on

  friend bool operator==(const Series&, const Series&) = default;
};

/// Digest of the nodes, links and groups of a topology, whatever its name.
std::string fingerprint(const Topology& topology);

/// Names the folder of a series: "allgather-0123456789ab".
std::string id_of(const Series& series);
/// "broadcast from GPU 2 over GPUs 0-7".
std::string describe(const Series& series);
/// Throws as make_demand() does.
Demand demand_of(const Series& series, double size_bytes, std::size_t num_gpus);

/// How the schedule of a cell came to be.
enum class Way {
  solved,    ///< made for this size and fabric
  adapted,   ///< made from an older schedule, as `rondo solve --from` does, or from other collectives' cells
  replayed,  ///< another cell's, timed anew
  refused    ///< there is none; `refusal` says why
};
const char* to_string(Way way);

/// A series at one size.
struct Cell {
  double size_bytes = 0;
  Way way = Way::refused;
  std::string schedule = {};  ///< digest that names the file; it may be of another size or fabric
  double finish_us = 0;       ///< of that schedule timed anew here
  std::optional<LowerBound> bound = std::nullopt;
  std::string digest = {};  ///< of the schedule as timed here
  std::string engine = {};
  std::uint64_t seed = 0;
  std::string made_from = {};  ///< digest of the (first) schedule that it was adapted from
  std::string sketch = {};     ///< over whose links alone the schedule was found; empty: over all
  std::string settings = {};   ///< of the build
  std::string producer = {};
  double wall_s = 0;
  std::string refusal = {};
  /// What the schedules of the next smaller and next larger cell at that time take here, over the finish of
  /// this one, minus 1; absent where there is no such cell or its schedule does not work here.
  std::optional<double> loss_of_smaller = std::nullopt;
  std::optional<double> loss_of_larger = std::nullopt;

  bool is_refused() const { return way == Way::refused; }
  double gap() const { return finish_us / bound->us - 1; }
};

/// Two neighbouring schedules at the last size where the one of smaller sizes is used, and at the first of
/// the other.
struct Border {
  double below_bytes = 0;
  double below_us = 0;        ///< of this bin's schedule, replayed
  double below_other_us = 0;  ///< of the next bin's; not less
  double above_bytes = 0;
  double above_us = 0;        ///< of the next bin's schedule
  double above_other_us = 0;  ///< of this bin's; not less
};

/// Sizes for which one schedule is the best of those near; bins of a series cover all sizes, once.
struct Bin {
  double from_bytes = 0;                                      ///< inclusive
  double to_bytes = std::numeric_limits<double>::infinity();  ///< exclusive
  std::string schedule = {};
  std::optional<Border> border = std::nullopt;  ///< to the next bin; none: the last one

  bool holds(double size_bytes) const { return from_bytes <= size_bytes && size_bytes < to_bytes; }
};

/// All that is known of a series.
struct Table {
  Series series;
  std::vector<Cell> cells = {};  ///< by size
  std::vector<Bin> bins = {};    ///< by size; empty while the series is unfinished
};

}  // namespace rondo::catalogue
