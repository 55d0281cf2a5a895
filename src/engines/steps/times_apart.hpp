#pragma once

namespace rondo {

/// By which one time has to be after another for the replay to take them for two.
inline double apart_us(double t_us) {
  return 1e-5 + 1e-8 * t_us;
}

}  // namespace rondo
