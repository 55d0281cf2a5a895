#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rondo::pictures {

struct PlotLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< (x, y) > 0, by x
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<PlotLine> lines;
};

/// Plots beneath one another, both axes logarithmic, as one SVG document. Plots without points are left out.
std::string svg_of(const std::vector<Plot>& plots);

}  // namespace rondo::pictures
