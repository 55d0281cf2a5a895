#pragma once

namespace rondo {

/// Room for rounding when times that ought to be equal are compared; far below the replay's own tolerance.
inline double time_slack_us(double t_us) {
  return 1e-9 + 1e-12 * t_us;
}

}  // namespace rondo
