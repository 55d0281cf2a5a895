#include <fmt/format.h>

#include <algorithm>

#include "fabric.hpp"
#include "places.hpp"
#include "rondo/core/error.hpp"
#include "rondo/pictures/pictures.hpp"
#include "text.hpp"
#include "timeline_svg.hpp"
#include "words.hpp"

namespace rondo {

using namespace pictures;

namespace {

constexpr double kWidth = 1040;
constexpr double kMargin = 20;
constexpr std::size_t kMostRows = 160;

/// The sentence in lines of about `letters`, broken between words.
std::vector<std::string> wrapped(const std::string& text, std::size_t letters) {
  std::vector<std::string> lines = {""};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && lines.back().size() + word.size() > letters) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string svg_picture(const PictureSubject& subject) {
  const ProvenSchedule& proven = subject.proven;
  const auto loads = link_loads(proven);
  const double end_us = axis_end_us(proven);
  const Places places = places_of(proven.topology);
  const TopologyDrawing fabric = draw_fabric(proven.topology, places);
  const auto rows = timeline_rows(proven.topology, places, kMostRows);
  const SvgPart timeline = timeline_svg(subject, rows, loads, kWidth - 2 * kMargin);

  const std::string words = result_words(proven);
  std::string head =
      fmt::format("<text x=\"{0}\" y=\"34\" font-size=\"19\" font-weight=\"bold\">{1}</text>\n",
                  coordinate(kMargin), markup(title_words(proven)));
  double y = 40;
  for (const std::string& line : wrapped(words, 132)) {
    y += 18;
    head += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"13\">{}</text>\n", coordinate(kMargin),
                        coordinate(y), markup(line));
  }
  y += 22;
  const auto note = [&](double x, const char* text) {
    head += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"10.5\" fill=\"#222\">{}</text>\n", coordinate(x),
                        coordinate(y + 10), text);
  };
  note(kMargin, "The wider a link, the more bytes; each direction bends to its right. Colours:");
  head += colour_legend(480, y);
  if (shows_single_sends(proven, rows)) {
    note(712, proven.demand.has_several_sources()
                  ? "Sends: colour of the GPU that has the sum first; pale: added."
                  : "Sends have the colour of their chunk's origin.");
  }
  y += 24;

  const double scale =
      fabric.nodes.empty() ? 0 : std::min({(kWidth - 2 * kMargin) / fabric.width, 760 / fabric.height, 1.6});
  const double left = (kWidth - scale * fabric.width) / 2;
  const double timeline_top = y + scale * fabric.height + 22;
  const double height = timeline_top + timeline.height + kMargin;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
             "role=\"img\" aria-labelledby=\"title description\" font-family=\"Helvetica, Arial, "
             "sans-serif\">\n"
             "<title id=\"title\">{2}</title>\n<desc id=\"description\">{3} {4}</desc>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
             coordinate(kWidth), coordinate(height), markup(title_words(proven)), markup(words),
             markup(certificate_words(proven))) +
         head +
         fmt::format("<g transform=\"translate({} {}) scale({:.4g})\">\n", coordinate(left), coordinate(y),
                     scale) +
         fabric_svg(fabric, paint_of(loads, end_us)) +
         fmt::format("</g>\n<g transform=\"translate({} {})\">\n", coordinate(kMargin),
                     coordinate(timeline_top)) +
         timeline.elements + "</g>\n</svg>\n";
}

std::string topology_picture(const Topology& topology) {
  const TopologyDrawing drawing = draw_fabric(topology, places_of(topology));
  if (drawing.nodes.empty()) {
    throw Error(ExitCode::unavailable,
                fmt::format("'{}' has {} nodes, too many for a drawing of them; draw one with fewer",
                            topology.name(), topology.num_nodes()));
  }
  const double scale = std::min({(kWidth - 2 * kMargin) / drawing.width, 1000 / drawing.height, 1.6});
  const double top = 52;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
             "role=\"img\" aria-labelledby=\"title\" font-family=\"Helvetica, Arial, sans-serif\">\n"
             "<title id=\"title\">{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
             "<text x=\"{3}\" y=\"34\" font-size=\"19\" font-weight=\"bold\">{2}</text>\n"
             "<g transform=\"translate({4} {5}) scale({6:.4g})\">\n",
             coordinate(kWidth), coordinate(top + scale * drawing.height + kMargin), markup(topology.name()),
             coordinate(kMargin), coordinate((kWidth - scale * drawing.width) / 2), coordinate(top), scale) +
         fabric_svg(drawing, paint_of(topology)) + "</g>\n</svg>\n";
}

}  // namespace rondo
