#include "schedule_claims.hpp"

#include <fmt/format.h>

#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo {

ScheduleClaims claims_of(const ProvenSchedule& proven) {
  const double finish = proven.schedule.finish_us;
  ScheduleClaims claims;
  claims.algorithm_bandwidth_GBps = algorithm_bandwidth_GBps(proven.demand.size_bytes(), finish);
  if (proven.lower_bound) claims.gap = finish / proven.lower_bound->us - 1;
  return claims;
}

void check_claims(const ProvenSchedule& proven, const ScheduleClaims& stored) {
  const ScheduleClaims derived = claims_of(proven);
  if (stored.algorithm_bandwidth_GBps) {
    const double right = *derived.algorithm_bandwidth_GBps;
    if (!(std::abs(*stored.algorithm_bandwidth_GBps - right) <= 1e-4 * right)) {
      throw Error(ExitCode::bad_data,
                  fmt::format("algorithm_bandwidth_GBps is {}, but size_bytes / finish_us gives {}",
                              *stored.algorithm_bandwidth_GBps, right));
    }
  }
  if (!stored.gap) return;
  if (!derived.gap) throw Error(ExitCode::bad_data, "gap is given without a lower_bound that it refers to");
  if (!(std::abs(*stored.gap - *derived.gap) <= 1e-5)) {
    throw Error(ExitCode::bad_data, fmt::format("gap is {}, but finish_us / lower_bound - 1 gives {}",
                                                *stored.gap, *derived.gap));
  }
}

void check_schedule_format(const std::string& format, std::int64_t version) {
  if (format == "rondo-schedule" && version == 1) return;
  throw Error(ExitCode::bad_data,
              fmt::format("format is '{}', version {}; this program reads rondo-schedule, version 1", format,
                          version));
}

}  // namespace rondo
