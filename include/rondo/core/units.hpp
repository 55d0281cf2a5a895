#pragma once

#include <string>
#include <string_view>

namespace rondo {

/// 1 GB/s in bytes a microsecond.
inline constexpr double kBytesPerUsPerGBps = 1e3;

/// Time to transmit `bytes` at `bandwidth_GBps` (decimal gigabytes a second), without latency, in
/// microseconds.
constexpr double transmission_us(double bytes, double bandwidth_GBps) {
  return bytes / (bandwidth_GBps * kBytesPerUsPerGBps);
}

/// Algorithm bandwidth: `size_bytes` / `finish_us`, in GB/s (FORMATS.md 2).
constexpr double algorithm_bandwidth_GBps(double size_bytes, double finish_us) {
  return size_bytes / (finish_us * kBytesPerUsPerGBps);
}

/// Reads "1GB", "25 KB", "64KiB", "512" (bytes). KB, MB, GB are decimal, KiB, MiB, GiB binary; a fraction
/// such as "1.5MB" is allowed. Throws Error(usage) for anything else and for a size that is not positive and
/// finite.
double parse_size(std::string_view text);

/// "1 GB", "62.5 KB": decimal, at most four significant digits.
std::string format_size(double bytes);

}  // namespace rondo
