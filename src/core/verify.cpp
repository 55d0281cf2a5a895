#include "rondo/core/verify.hpp"

#include <fmt/format.h>

#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"

namespace rondo {
namespace {

[[noreturn]] void refuse_schedule(const std::string& message) {
  throw Error(ExitCode::bad_data, message);
}

}  // namespace

void verify(const ProvenSchedule& proven) {
  const ReplayResult replayed = replay(proven.topology, proven.demand, proven.schedule.sends);
  if (!replayed.valid()) refuse_schedule(*replayed.violation);
  if (!times_equal(replayed.finish_us, proven.schedule.finish_us)) {
    refuse_schedule(fmt::format("finish_us is {}, but the sends end at {}", proven.schedule.finish_us,
                                replayed.finish_us));
  }
  if (const auto mismatch = mismatch_with_collective(proven.demand)) refuse_schedule(*mismatch);
  if (!proven.lower_bound) return;
  const LowerBound& claimed = *proven.lower_bound;
  const double derived = bound_of(proven.topology, proven.demand, claimed.certificate);
  const double sound = sound_bound_of(proven.topology, proven.demand, claimed.certificate);
  if (!times_equal(derived, claimed.us) && !times_equal(sound, claimed.us)) {
    refuse_schedule(fmt::format("the lower bound is {} us, but its {} certificate gives {} us", claimed.us,
                                certificate_kind(claimed.certificate), sound));
  }
  if (claimed.us > replayed.finish_us && !times_equal(claimed.us, replayed.finish_us)) {
    refuse_schedule(fmt::format(
        "the lower bound is {} us, but the schedule ends at {} us; the certificate proves {} us only",
        claimed.us, replayed.finish_us, sound));
  }
}

}  // namespace rondo
