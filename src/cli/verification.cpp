#include "verification.hpp"

#include <fmt/format.h>

#include <cmath>

#include "input.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"

namespace rondo::cli {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ExitCode::bad_data, message);
}

}  // namespace

Figures figures_of(const ProvenSchedule& proven) {
  Figures figures;
  figures.finish_us = proven.schedule.finish_us;
  figures.algorithm_bandwidth_GBps = algorithm_bandwidth_GBps(proven.demand.size_bytes(), figures.finish_us);
  if (proven.lower_bound) {
    figures.lower_bound_us = proven.lower_bound->us;
    // A schedule that meets its bound has no gap, whatever the last bits of two sums say.
    const bool met = times_equal(figures.finish_us, figures.lower_bound_us);
    figures.gap = met ? 0 : figures.finish_us / figures.lower_bound_us - 1;
  }
  return figures;
}

std::string describe(const Figures& figures) {
  const std::string head = fmt::format("finish {:.7g} us, algorithm bandwidth {:.4g} GB/s", figures.finish_us,
                                       figures.algorithm_bandwidth_GBps);
  if (figures.lower_bound_us <= 0) return head + ", no lower bound";
  return fmt::format("{}, lower bound {:.7g} us, gap {:.2f} %", head, figures.lower_bound_us,
                     100 * figures.gap);
}

ProvenSchedule load_schedule(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return load_schedule(path / "schedule.h5");
  if (path.extension() == ".json") {
    return read_as(path, [](const Json& json) { return schedule_from_json(json); });
  }
  return read_schedule_hdf5(path);
}

void check_schedule(const ProvenSchedule& proven) {
  const ReplayResult replayed = replay(proven.topology, proven.demand, proven.schedule.sends);
  if (!replayed.valid()) refuse(*replayed.violation);
  if (!times_equal(replayed.finish_us, proven.schedule.finish_us)) {
    refuse(fmt::format("finish_us is {}, but the sends end at {}", proven.schedule.finish_us,
                       replayed.finish_us));
  }
  if (const auto mismatch = mismatch_with_collective(proven.demand)) refuse(*mismatch);
  if (!proven.lower_bound) return;
  const LowerBound& claimed = *proven.lower_bound;
  const double derived = bound_of(proven.topology, proven.demand, claimed.certificate);
  const double sound = sound_bound_of(proven.topology, proven.demand, claimed.certificate);
  if (!times_equal(derived, claimed.us) && !times_equal(sound, claimed.us)) {
    refuse(fmt::format("the lower bound is {} us, but its {} certificate gives {} us", claimed.us,
                       certificate_kind(claimed.certificate), sound));
  }
  if (claimed.us > replayed.finish_us && !times_equal(claimed.us, replayed.finish_us)) {
    refuse(fmt::format(
        "the lower bound is {} us, but the schedule ends at {} us; the certificate proves {} us only",
        claimed.us, replayed.finish_us, sound));
  }
}

}  // namespace rondo::cli
