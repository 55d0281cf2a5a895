#include "figures.hpp"

#include <fmt/format.h>

#include "rondo/core/replay.hpp"
#include "rondo/core/units.hpp"

namespace rondo::cli {

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

}  // namespace rondo::cli
