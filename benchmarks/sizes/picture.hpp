#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rondo::benchmarks::sizes {

/// Of all fabrics: what 1 + gap is in the geometric mean, and the largest gap.
struct GapOfSize {
  double bytes = 0;
  double mean = 0;
  double worst = 0;
};

/// Writes an SVG with one line a collective for the mean gap over the size, dashed for the largest; both axes
/// are logarithmic. Throws Error(unavailable) where the file cannot be written.
void draw_gaps(const std::filesystem::path& file,
               const std::map<std::string, std::vector<GapOfSize>>& gaps_of_collective);

}  // namespace rondo::benchmarks::sizes
