#include "picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "rondo/core/error.hpp"

namespace rondo::benchmarks::sizes {
namespace {

constexpr double kLeft = 60;
constexpr double kTop = 20;
constexpr double kWidth = 640;
constexpr double kHeight = 360;
/// Gaps below are drawn there.
constexpr double kLeastGap = 1e-5;
constexpr double kMostGap = 1;
constexpr double kLeastBytes = 1e3;
constexpr double kMostBytes = 1e9;
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

double place(double value, double least, double most) {
  return std::log(std::clamp(value, least, most) / least) / std::log(most / least);
}

double x_of(double bytes) {
  return kLeft + kWidth * place(bytes, kLeastBytes, kMostBytes);
}

double y_of(double gap) {
  return kTop + kHeight * (1 - place(gap, kLeastGap, kMostGap));
}

std::string line(const std::vector<GapOfSize>& gaps, double GapOfSize::*gap, const char* colour,
                 const char* style) {
  std::string points;
  for (const GapOfSize& g : gaps) points += fmt::format("{:.1f},{:.1f} ", x_of(g.bytes), y_of(g.*gap));
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>\n", points,
                     colour, style);
}

std::string axes() {
  std::string text;
  for (const double gap : {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0}) {
    const double y = y_of(gap);
    text += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ccc\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5} %</text>\n",
        kLeft, kLeft + kWidth, y, kLeft - 6, y + 4, 100 * gap);
  }
  for (const auto& [bytes, name] : {std::pair{1e3, "1 KB"}, {1e6, "1 MB"}, {1e9, "1 GB"}}) {
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x_of(bytes),
                        kTop + kHeight + 18, name);
  }
  return text;
}

}  // namespace

void draw_gaps(const std::filesystem::path& file,
               const std::map<std::string, std::vector<GapOfSize>>& gaps_of_collective) {
  std::string body = axes();
  std::size_t i = 0;
  for (const auto& [collective, gaps] : gaps_of_collective) {
    const char* colour = kColours[i % kColours.size()];
    body += line(gaps, &GapOfSize::mean, colour, "");
    body += line(gaps, &GapOfSize::worst, colour, " stroke-dasharray=\"4 3\"");
    body += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", kLeft + kWidth + 12,
                        kTop + 12 + 18 * static_cast<double>(i), colour, collective);
    ++i;
  }
  std::ofstream out(file);
  out << fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<title>gap over size: geometric mean over the fabrics, and dashed the "
      "largest</title>\n{}</svg>\n",
      kLeft + kWidth + 130, kTop + kHeight + 30, body);
  out.close();
  if (!out) throw Error(ExitCode::unavailable, fmt::format("cannot write '{}'", file.string()));
}

}  // namespace rondo::benchmarks::sizes
