#include "timeline_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fabric.hpp"
#include "rondo/core/index.hpp"
#include "text.hpp"
#include "words.hpp"

namespace rondo::pictures {
namespace {

constexpr std::size_t kMostSingleSends = 2000;
constexpr std::size_t kBins = 320;
constexpr double kLabelWidth = 190;
constexpr double kBarWidth = 118;
constexpr double kTop = 34;

struct Frame {
  double left = 0;
  double width = 0;
  double row_height = 0;
  double end_us = 0;
  double x(double us) const { return left + width * us / end_us; }
  double y(std::size_t row) const { return kTop + row_height * static_cast<double>(row); }
};

std::string shortened(const std::string& label, std::size_t most) {
  std::size_t letters = 0;
  for (std::size_t i = 0; i < label.size(); ++i) {
    const bool begins_letter = (static_cast<unsigned char>(label[i]) & 0xC0) != 0x80;
    if (begins_letter && ++letters > most) return label.substr(0, i) + "…";
  }
  return label;
}

/// GPUs in hues that are far apart from one number to the next.
std::string node_colour(const Topology& topology, NodeId node) {
  const GpuId gpu = topology.gpu_of(node);
  return fmt::format("hsl({:.0f},60%,{}%)", std::fmod(137.508 * gpu.value, 360),
                     std::array{52, 42, 62}[gpu.index() % 3]);
}

std::string axis(const Frame& frame, std::size_t rows) {
  std::string text = "<g stroke=\"#d5d9e0\" font-size=\"10\">\n";
  for (const double tick : axis_ticks(frame.end_us, 8)) {
    text += fmt::format(
        "<path d=\"M{0} {1}V{2}\"/><text x=\"{0}\" y=\"{3}\" text-anchor=\"middle\" stroke=\"none\" "
        "fill=\"#333\">{4}</text>\n",
        coordinate(frame.x(tick)), coordinate(kTop - 4), coordinate(frame.y(rows) + 3), coordinate(kTop - 8),
        fmt::format("{:g}", tick));
  }
  return text + fmt::format(
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" stroke=\"none\" fill=\"#333\">time, "
                    "us</text></g>\n",
                    coordinate(frame.left - 12), coordinate(kTop - 8));
}

/// A bar is as high as its send's share of the bandwidth and stands on what else the link carries. Sends that
/// add are pale with a dark edge.
std::string single_sends(const PictureSubject& subject, const std::vector<int>& row_of, const Frame& frame) {
  const ProvenSchedule& proven = subject.proven;
  const Topology& topology = proven.topology;
  const SumFacts sums = sum_facts(proven);
  constexpr double kLeastHeight = 1.5;
  std::string text = "<g stroke=\"#fff\" stroke-width=\"0.4\">\n";
  for (const StackedPart& part : stacked(proven)) {
    const Send& send = proven.schedule.sends[index(part.send)];
    const double full = frame.row_height - 2;
    const double height = std::max(kLeastHeight, full * std::min(1.0, part.high - part.low));
    const double top = frame.y(static_cast<std::size_t>(row_of[send.link.index()])) + 1 +
                       full * (1 - std::min(1.0, part.low));
    const std::string colour = node_colour(topology, sums.complete[send.chunk.index()]);
    text += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}><title>{}, {}, {} to {} "
        "us</title></rect>\n",
        coordinate(frame.x(part.from_us)), coordinate(top - height),
        coordinate(std::max(0.3, frame.x(part.to_us) - frame.x(part.from_us))), coordinate(height), colour,
        sums.adds[index(part.send)] ? fmt::format(" fill-opacity=\"0.4\" stroke=\"{}\"", colour) : "",
        markup(send_label(proven, sums, part.send)), markup(link_label(topology, send.link)),
        short_number(send.start_us), short_number(send.end_us));
  }
  return text + "</g>\n";
}

/// One path a colour: a stroke as high as the row for each stretch of equal colour.
std::string aggregated(const PictureSubject& subject, const std::vector<int>& row_of, std::size_t rows,
                       const Frame& frame) {
  const auto shares = busy_shares(subject.proven, row_of, rows, kBins, frame.end_us);
  std::array<std::string, kColourSteps> paths;
  std::array<std::string, kColourSteps> colours;
  for (std::size_t step = 0; step < kColourSteps; ++step) {
    colours[step] = utilisation_colour(static_cast<double>(step) / (kColourSteps - 1));
  }
  const double step_width = frame.width / kBins;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* share = &shares[row * kBins];
    for (std::size_t bin = 0; bin < kBins;) {
      // A hundredth is what rounding of times leaves.
      const std::string colour = utilisation_colour(share[bin] < 0.01 ? 0 : share[bin] - 0.005);
      std::size_t next = bin + 1;
      while (next < kBins && utilisation_colour(share[next] < 0.01 ? 0 : share[next] - 0.005) == colour)
        ++next;
      const auto step =
          static_cast<std::size_t>(std::find(colours.begin(), colours.end(), colour) - colours.begin());
      paths[step] += fmt::format("M{} {}h{}", coordinate(frame.left + step_width * static_cast<double>(bin)),
                                 coordinate(frame.y(row) + frame.row_height / 2),
                                 coordinate(step_width * static_cast<double>(next - bin)));
      bin = next;
    }
  }
  std::string text =
      fmt::format("<g fill=\"none\" stroke-width=\"{}\">\n", coordinate(frame.row_height - 1.5));
  for (std::size_t step = 1; step < kColourSteps; ++step) {  // idle time stays white
    if (!paths[step].empty())
      text += fmt::format("<path stroke=\"{}\" d=\"{}\"/>\n", colours[step], paths[step]);
  }
  return text + "</g>\n";
}

std::string labels_and_bars(const std::vector<Row>& rows, const std::vector<LinkLoad>& loads,
                            const Frame& frame) {
  const double bar_left = frame.left + frame.width + 14;
  const double bar_width = kBarWidth - 60;
  std::string text =
      fmt::format("<g font-size=\"{}\" fill=\"#222\">\n", coordinate(std::min(10.5, frame.row_height - 1)));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double share = utilisation(rows[row].links, loads, frame.end_us);
    const std::string baseline = coordinate(frame.y(row) + frame.row_height * 0.5 + 3.4);
    text += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>\n",
        coordinate(frame.left - 6), baseline, markup(shortened(rows[row].label, 32)), coordinate(bar_left),
        coordinate(frame.y(row) + 1.5), coordinate(bar_width * std::min(1.0, share)),
        coordinate(frame.row_height - 3), utilisation_colour(share), coordinate(bar_left + bar_width + 4),
        baseline, percent(share));
  }
  return text + fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#333\">busy</text></g>\n",
                            coordinate(bar_left + bar_width + 4), coordinate(kTop - 8));
}

/// A vertical line with its meaning below the rows.
std::string mark(const Frame& frame, std::size_t rows, double us, const std::string& what, int line,
                 const char* style) {
  const double x = frame.x(us);
  return fmt::format(
      "<path d=\"M{0} {1}V{2}\" {3}/><text x=\"{4}\" y=\"{5}\" font-size=\"10.5\" text-anchor=\"end\" "
      "fill=\"#222\">{6} {7} us</text>\n",
      coordinate(x), coordinate(kTop - 4), coordinate(frame.y(rows) + 5 + 13 * line), style,
      coordinate(x - 4), coordinate(frame.y(rows) + 4 + 13 * (line + 0.6)), what, short_number(us));
}

}  // namespace

bool shows_single_sends(const ProvenSchedule& proven, const std::vector<Row>& rows) {
  return rows.size() == proven.topology.num_links() && proven.schedule.sends.size() <= kMostSingleSends;
}

std::vector<double> axis_ticks(double end, std::size_t most) {
  const double rough = end / static_cast<double>(most);
  double step = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (step < rough) step *= factor;
  }
  std::vector<double> ticks;
  for (std::size_t i = 0; static_cast<double>(i) * step <= end * (1 + 1e-9); ++i) {
    ticks.push_back(static_cast<double>(i) * step);
  }
  return ticks;
}

std::string colour_legend(double x, double y) {
  std::string text = fmt::format(
      "<g font-size=\"10.5\" fill=\"#222\"><text x=\"{}\" y=\"{}\" text-anchor=\"end\">idle</text>",
      coordinate(x - 5), coordinate(y + 10));
  for (int step = 0; step < kColourSteps; ++step) {
    text += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"12\" fill=\"{}\"/>",
                        coordinate(x + 18 * step), coordinate(y),
                        utilisation_colour(static_cast<double>(step) / (kColourSteps - 1)));
  }
  return text + fmt::format("<text x=\"{}\" y=\"{}\">always busy</text></g>\n",
                            coordinate(x + 18 * kColourSteps + 5), coordinate(y + 10));
}

SvgPart timeline_svg(const PictureSubject& subject, const std::vector<Row>& rows,
                     const std::vector<LinkLoad>& loads, double width) {
  const ProvenSchedule& proven = subject.proven;
  const Frame frame{.left = kLabelWidth,
                    .width = width - kLabelWidth - kBarWidth,
                    .row_height = rows.size() <= 40 ? 15.0 : 12.0,
                    .end_us = axis_end_us(proven)};
  const std::vector<int> row_of = row_of_links(rows, proven.topology.num_links());
  std::string text = axis(frame, rows.size());
  text += shows_single_sends(proven, rows) ? single_sends(subject, row_of, frame)
                                           : aggregated(subject, row_of, rows.size(), frame);
  text += labels_and_bars(rows, loads, frame);
  for (const RoundSpan& round : subject.rounds) {
    text +=
        fmt::format("<path d=\"M{} {}v6\" stroke=\"#8a5a00\"><title>a round ends at {} us</title></path>\n",
                    coordinate(frame.x(round.end_us)), coordinate(kTop - 6), short_number(round.end_us));
  }
  text += mark(frame, rows.size(), proven.schedule.finish_us, "finish", 0, "stroke=\"#111\"");
  if (proven.lower_bound) {
    text += mark(frame, rows.size(), proven.lower_bound->us, "lower bound", 1,
                 "stroke=\"#b3261e\" stroke-dasharray=\"5 3\"");
  }
  return {text, width, frame.y(rows.size()) + 36};
}

}  // namespace rondo::pictures
