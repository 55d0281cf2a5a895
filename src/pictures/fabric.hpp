#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis.hpp"
#include "places.hpp"
#include "rondo/core/topology.hpp"

/// The topology as a drawing: where its nodes stand and how loaded its links are.
namespace rondo::pictures {

struct Point {
  double x = 0;
  double y = 0;
};

struct DrawnNode {
  Point at;
  double radius = 0;
  std::string label;  ///< short, beside or in the node
  bool is_switch = false;
  bool is_group = false;            ///< a whole place
  std::vector<LinkId> inside = {};  ///< links within a group
};

/// The links from one drawn node to another.
struct DrawnLink {
  int src = 0;
  int dst = 0;
  std::vector<LinkId> links;
  Point round = {};  ///< unit step in which a link around the edge of a torus leaves; else zero
};

/// The outline of a place whose nodes are drawn one by one.
struct DrawnPlace {
  Point at;
  double radius = 0;
  std::string label;
};

struct TopologyDrawing {
  double width = 0;
  double height = 0;
  std::vector<DrawnNode> nodes = {};
  std::vector<DrawnLink> links = {};
  std::vector<DrawnPlace> places = {};
};

/// Nodes one by one up to 80 of them, or where there are no places to draw instead. Empty beyond 4,000 nodes.
TopologyDrawing draw_fabric(const Topology& topology, const Places& places);

/// Share of the time up to `end_us` that the links transmit, averaged over them.
double utilisation(const std::vector<LinkId>& links, const std::vector<LinkLoad>& loads, double end_us);

/// How links that are drawn as one look.
struct LinkPaint {
  double weight = 0;  ///< the heavier, the wider
  double share = 0;   ///< in [0, 1]: the colour
  std::string words = {};
};
using LinkPainter = std::function<LinkPaint(const std::vector<LinkId>& links)>;
/// By what a schedule makes of them; `loads` must outlive it.
LinkPainter paint_of(const std::vector<LinkLoad>& loads, double end_us);
/// By their bandwidth; `topology` must outlive it.
LinkPainter paint_of(const Topology& topology);

/// The drawing as SVG elements, each with a title. Links carry data-link="position in `links`"; of more than
/// kMostDrawnLinks the heaviest are drawn.
inline constexpr std::size_t kMostDrawnLinks = 4000;
std::string fabric_svg(const TopologyDrawing& drawing, const LinkPainter& paint);

/// The colour of a utilisation in [0, 1], and the steps that a legend shows.
std::string utilisation_colour(double share);
inline constexpr int kColourSteps = 8;

}  // namespace rondo::pictures
