#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "fabric.hpp"
#include "rondo/core/units.hpp"
#include "text.hpp"

namespace rondo::pictures {
namespace {

/// From idle to always busy: light to dark, so that it reads without colour too.
constexpr std::array<const char*, kColourSteps> kColours = {"#d9dee6", "#c6dbb4", "#9fd0a0", "#66bdb0",
                                                            "#3a9fbe", "#2b74b3", "#284f9c", "#1a1f6b"};

/// The colour of links that are drawn without a schedule.
constexpr double kPlainShare = 0.5;

/// A curve from rim to rim that bends to its right, so that the two directions of a pair stay apart.
std::string curve(const DrawnNode& from, const DrawnNode& to) {
  const double dx = to.at.x - from.at.x;
  const double dy = to.at.y - from.at.y;
  const double length = std::max(1e-9, std::hypot(dx, dy));
  const double bend = std::min(60.0, 5 + 0.1 * length);
  const Point middle{(from.at.x + to.at.x) / 2 - dy / length * bend,
                     (from.at.y + to.at.y) / 2 + dx / length * bend};
  const auto rim = [&](const DrawnNode& node, double gap) {
    const double ux = middle.x - node.at.x;
    const double uy = middle.y - node.at.y;
    const double scale = (node.radius + gap) / std::max(1e-9, std::hypot(ux, uy));
    return Point{node.at.x + ux * scale, node.at.y + uy * scale};
  };
  const Point a = rim(from, 1);
  const Point b = rim(to, 3);
  return fmt::format("M{} {}Q{} {} {} {}", coordinate(a.x), coordinate(a.y), coordinate(middle.x),
                     coordinate(middle.y), coordinate(b.x), coordinate(b.y));
}

/// Out of the drawing on one side and in on the other, to the right of the middle like a curve.
std::string stubs(const DrawnNode& from, const DrawnNode& to, Point path) {
  constexpr double kLength = 16, kAside = 4;
  const Point out{from.at.x + path.x * (from.radius + 1) - path.y * kAside,
                  from.at.y + path.y * (from.radius + 1) + path.x * kAside};
  const Point in{to.at.x - path.x * (to.radius + 3 + kLength) - path.y * kAside,
                 to.at.y - path.y * (to.radius + 3 + kLength) + path.x * kAside};
  const std::string step = fmt::format("l{} {}", coordinate(path.x * kLength), coordinate(path.y * kLength));
  return fmt::format("M{} {}{}M{} {}{}", coordinate(out.x), coordinate(out.y), step, coordinate(in.x),
                     coordinate(in.y), step);
}

double bytes_of(const std::vector<LinkId>& links, const std::vector<LinkLoad>& loads) {
  double bytes = 0;
  for (const LinkId l : links) bytes += loads[l.index()].bytes;
  return bytes;
}

std::string load_words(const std::vector<LinkId>& links, const std::vector<LinkLoad>& loads, double end_us) {
  return fmt::format("{}{}, busy {} of the time",
                     links.size() > 1 ? count_of(links.size(), "link") + ": " : std::string(),
                     format_size(bytes_of(links, loads)), percent(utilisation(links, loads, end_us)));
}

std::string link_element(const TopologyDrawing& drawing, std::size_t index, const LinkPaint& paint,
                         double most_weight, double most_width) {
  const DrawnLink& link = drawing.links[index];
  const DrawnNode& from = drawing.nodes[static_cast<std::size_t>(link.src)];
  const DrawnNode& to = drawing.nodes[static_cast<std::size_t>(link.dst)];
  const bool goes_round = link.round.x != 0 || link.round.y != 0;
  const double width = paint.weight > 0 ? most_width * (0.2 + 0.8 * paint.weight / most_weight) : 0.6;
  return fmt::format(
      "<path data-link=\"{}\" d=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}><title>{} → {}: {}</title>"
      "</path>\n",
      index, goes_round ? stubs(from, to, link.round) : curve(from, to),
      utilisation_colour(paint.weight > 0 ? paint.share : 0), coordinate(width),
      paint.weight > 0 ? "" : " stroke-dasharray=\"3 3\"", markup(from.label), markup(to.label), paint.words);
}

/// The largest letters with which a name fits into its node.
double fitting_letters(const DrawnNode& node) {
  const auto letters = static_cast<double>(std::max<std::size_t>(1, node.label.size()));
  return std::min(11.0, 2 * node.radius * 0.92 / (letters * 0.6));
}

/// `letters`: the size of the names. Where one does not fit into its node it stands below.
std::string node_element(const DrawnNode& node, double letters, const LinkPainter& paint) {
  const LinkPaint inner = node.inside.empty() ? LinkPaint{} : paint(node.inside);
  const double share = inner.share;
  const std::string fill =
      node.is_group ? utilisation_colour(share) : (node.is_switch ? "#fff3d6" : "#ffffff");
  std::string title = markup(node.label);
  if (!node.inside.empty()) title += ", inside: " + inner.words;
  std::string text = fmt::format("<g><title>{}</title>", title);
  if (node.is_switch) {
    text += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"",
                        coordinate(node.at.x - node.radius), coordinate(node.at.y - 0.75 * node.radius),
                        coordinate(2 * node.radius), coordinate(1.5 * node.radius));
  } else {
    text += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"", coordinate(node.at.x), coordinate(node.at.y),
                        coordinate(node.radius));
  }
  const bool inside = fitting_letters(node) >= letters;
  const double baseline = inside ? node.at.y + 0.35 * letters : node.at.y + node.radius + letters;
  const bool on_dark = node.is_group && share > 0.45 && inside;
  // A name below its node has links behind it.
  const char* halo = inside ? "" : " paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\"";
  return text + fmt::format(
                    " fill=\"{}\" stroke=\"#333\"/><text x=\"{}\" y=\"{}\" font-size=\"{}\" "
                    "text-anchor=\"middle\" fill=\"{}\"{}>{}</text></g>\n",
                    fill, coordinate(node.at.x), coordinate(baseline), coordinate(letters),
                    on_dark ? "#fff" : "#111", halo, markup(node.label));
}

/// Small enough for nearly all names, but not too small to be read.
double letters_for(const std::vector<DrawnNode>& nodes) {
  std::vector<double> fitting;
  for (const DrawnNode& node : nodes) fitting.push_back(fitting_letters(node));
  std::sort(fitting.begin(), fitting.end());
  return fitting.empty() ? 0 : std::max(4.5, fitting[fitting.size() / 10]);
}

}  // namespace

std::string utilisation_colour(double share) {
  const int step =
      share <= 0 ? 0
                 : std::clamp(static_cast<int>(std::ceil(share * (kColourSteps - 1))), 1, kColourSteps - 1);
  return kColours[static_cast<std::size_t>(step)];
}

double utilisation(const std::vector<LinkId>& links, const std::vector<LinkLoad>& loads, double end_us) {
  double busy = 0;
  for (const LinkId l : links) busy += loads[l.index()].busy_us;
  return busy / (end_us * std::max(1.0, static_cast<double>(links.size())));
}

LinkPainter paint_of(const std::vector<LinkLoad>& loads, double end_us) {
  return [&loads, end_us](const std::vector<LinkId>& links) -> LinkPaint {
    return {bytes_of(links, loads), utilisation(links, loads, end_us), load_words(links, loads, end_us)};
  };
}

LinkPainter paint_of(const Topology& topology) {
  return [&topology](const std::vector<LinkId>& links) -> LinkPaint {
    double GBps = 0;
    for (const LinkId link : links) GBps += topology.link(link).bandwidth_GBps;
    return {GBps, kPlainShare,
            fmt::format("{}{} GB/s", links.size() > 1 ? count_of(links.size(), "link") + ": " : std::string(),
                        short_number(GBps))};
  };
}

std::string fabric_svg(const TopologyDrawing& drawing, const LinkPainter& paint) {
  std::string text = "<g fill=\"#f4f6f9\" stroke=\"#b8c0cc\">\n";
  for (const DrawnPlace& place : drawing.places) {
    text += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", coordinate(place.at.x),
                        coordinate(place.at.y), coordinate(place.radius));
  }
  text += "</g>\n<g fill=\"none\">\n";
  std::vector<LinkPaint> paints;
  for (const DrawnLink& link : drawing.links) paints.push_back(paint(link.links));
  std::vector<std::size_t> order(paints.size());  // the heaviest on top
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return paints[a].weight < paints[b].weight; });
  if (order.size() > kMostDrawnLinks) order.erase(order.begin(), order.end() - kMostDrawnLinks);
  // A crowd of links is drawn thinner.
  const double most_width = std::clamp(550.0 / static_cast<double>(order.size() + 1), 1.2, 5.5);
  for (const std::size_t i : order) {
    text += link_element(drawing, i, paints[i], std::max(paints[order.back()].weight, 1e-300), most_width);
  }
  text += "</g>\n<g>\n";
  const double letters = letters_for(drawing.nodes);
  for (const DrawnNode& node : drawing.nodes) text += node_element(node, letters, paint);
  text +=
      "</g>\n<g font-size=\"12\" text-anchor=\"middle\" fill=\"#333\" paint-order=\"stroke\" stroke=\"#fff\" "
      "stroke-width=\"4\">\n";
  for (const DrawnPlace& place : drawing.places) {
    text += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", coordinate(place.at.x),
                        coordinate(place.at.y - place.radius - 5), markup(place.label));
  }
  return text + "</g>\n";
}

}  // namespace rondo::pictures
