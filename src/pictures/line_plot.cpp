#include "rondo/pictures/line_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "text.hpp"

namespace rondo::pictures {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 360;
constexpr double kLeft = 90;
constexpr double kRight = 20;
constexpr double kTop = 40;
constexpr double kBottom = 50;
constexpr double kLegend = 120;  ///< to the right of the plot
constexpr const char* kColours[] = {"#1f5fa8", "#c04b2c", "#2f8a4c", "#8a5ab8",
                                    "#b8860b", "#2a9aa8", "#c2528f", "#555555"};

/// A logarithmic axis: values to positions.
class Axis {
 public:
  Axis(double low, double high, double from, double to)
      : low_(std::log(low)), high_(std::log(high)), from_(from), to_(to) {
    if (high_ - low_ < 1e-3) {  // a single value stands in the middle
      low_ -= 0.05;
      high_ += 0.05;
    }
  }
  double at(double value) const { return from_ + (to_ - from_) * (std::log(value) - low_) / (high_ - low_); }
  /// About `count` values from end to end, at even distances.
  std::vector<double> marks(int count) const {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(std::exp(low_ + (high_ - low_) * i / (count - 1)));
    return values;
  }

 private:
  double low_, high_, from_, to_;
};

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     markup(text));
}

std::string line_at(double x1, double y1, double x2, double y2) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#d8d8d8\"/>\n",
                     x1, y1, x2, y2);
}

std::string drawn(const Plot& plot, double top) {
  double x_low = std::numeric_limits<double>::infinity(), x_high = 0;
  double y_low = std::numeric_limits<double>::infinity(), y_high = 0;
  for (const PlotLine& line : plot.lines) {
    for (const auto& [x, y] : line.points) {
      x_low = std::min(x_low, x);
      x_high = std::max(x_high, x);
      y_low = std::min(y_low, y);
      y_high = std::max(y_high, y);
    }
  }
  const double right = kWidth - kRight;
  const double bottom = top + kHeight - kBottom;
  const Axis x_axis(x_low, x_high, kLeft + 10, right - 10);
  const Axis y_axis(y_low, y_high, bottom - 10, top + kTop + 10);
  std::string svg = text_at(kWidth / 2, top + 20, "middle", plot.title);
  for (const double x : x_axis.marks(5)) {
    svg += line_at(x_axis.at(x), top + kTop, x_axis.at(x), bottom);
    svg += text_at(x_axis.at(x), bottom + 16, "middle", fmt::format("{:.4g}", x));
  }
  for (const double y : y_axis.marks(5)) {
    svg += line_at(kLeft, y_axis.at(y), right, y_axis.at(y));
    svg += text_at(kLeft - 6, y_axis.at(y) + 4, "end", fmt::format("{:.5g}", y));
  }
  svg += text_at((kLeft + right) / 2, bottom + 36, "middle", plot.x_label);
  svg += text_at(kLeft - 6, top + kTop - 6, "end", plot.y_label);
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const PlotLine& line = plot.lines[i];
    const char* colour = kColours[i % std::size(kColours)];
    std::string points;
    for (const auto& [x, y] : line.points) {
      points += fmt::format("{:.1f},{:.1f} ", x_axis.at(x), y_axis.at(y));
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x_axis.at(x),
                         y_axis.at(y), colour);
    }
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", points,
                       colour);
    svg += fmt::format("<g fill=\"{}\">{}</g>\n", colour,
                       text_at(right + 8, top + kTop + 16 + 16 * static_cast<double>(i), "start", line.name));
  }
  return svg;
}

}  // namespace

std::string svg_of(const std::vector<Plot>& plots) {
  std::string body;
  double height = 0;
  for (const Plot& plot : plots) {
    if (std::ranges::all_of(plot.lines, [](const PlotLine& line) { return line.points.empty(); })) continue;
    body += drawn(plot, height);
    height += kHeight;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "{2}</svg>\n",
      kWidth + kLegend, height, body);
}

}  // namespace rondo::pictures
