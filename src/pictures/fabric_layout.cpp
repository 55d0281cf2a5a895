#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "fabric.hpp"
#include "text.hpp"

namespace rondo::pictures {
namespace {

constexpr std::size_t kMostSingleNodes = 80;
constexpr std::size_t kMostDrawnNodes = 4000;
constexpr std::size_t kMostOnACircle = 32;
constexpr double kNodeRadius = 13;
constexpr double kPi = std::numbers::pi;

Point on_circle(Point centre, double radius, std::size_t i, std::size_t n, double first_angle) {
  const double angle = first_angle + 2 * kPi * static_cast<double>(i) / static_cast<double>(n);
  return {centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)};
}

/// Radius of a circle on which n discs of radius r stand `gap` apart.
double circle_radius(std::size_t n, double r, double gap) {
  if (n < 2) return 0;
  return (r + gap / 2) / std::sin(kPi / static_cast<double>(n));
}

/// Columns of a grid of the GPUs in their order for which links are shortest on the whole.
std::size_t grid_columns(const Topology& topology) {
  const std::size_t n = topology.num_gpus();
  const auto square = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(n))));
  std::size_t best = square;
  double least = -1;
  for (std::size_t columns = (square + 1) / 2; columns <= 2 * square; ++columns) {
    double sum = n % columns == 0 ? 0 : static_cast<double>(topology.num_links());  // a ragged last row
    for (const Link& link : topology.links()) {
      if (!topology.is_gpu(link.src) || !topology.is_gpu(link.dst)) continue;
      const std::size_t a = topology.gpu_of(link.src).index();
      const std::size_t b = topology.gpu_of(link.dst).index();
      const auto far = [](std::size_t p, std::size_t q) {
        return static_cast<double>(p > q ? p - q : q - p);
      };
      sum += std::hypot(far(a % columns, b % columns), far(a / columns, b / columns));
    }
    if (least < 0 || sum < least) {
      least = sum;
      best = columns;
    }
  }
  return best;
}

/// Places the nodes and keeps which drawn node stands for which node.
class Layout {
 public:
  Layout(const Topology& topology, const Places& places) : topology_(topology), places_(places) {
    drawn_.assign(topology.num_nodes(), -1);
  }

  TopologyDrawing draw() && {
    const bool collapse = topology_.num_nodes() > kMostSingleNodes && places_.num_groups() > 1;
    std::vector<const Place*> groups, hubs;
    bool loose_gpus = false;
    for (const Place& place : places_.all) {
      if (place.size() > 1) {
        groups.push_back(&place);
      } else if (!place.gpus.empty()) {
        groups.push_back(&place);
        loose_gpus = true;
      } else {
        hubs.push_back(&place);
      }
    }
    if (loose_gpus && places_.num_groups() == 0 && topology_.num_gpus() > kMostOnACircle) {
      draw_grid(hubs);
    } else {
      draw_ring(groups, hubs, collapse);
    }
    if (drawing_.nodes.size() > kMostDrawnNodes) return {};
    add_links();
    if (columns_ > 0) lead_round();
    crop();
    return std::move(drawing_);
  }

 private:
  void add_node(Point at, double radius, const std::string& label, bool is_switch, bool is_group,
                const std::vector<NodeId>& members) {
    for (const NodeId n : members) drawn_[n.index()] = static_cast<int>(drawing_.nodes.size());
    drawing_.nodes.push_back(
        {.at = at, .radius = radius, .label = label, .is_switch = is_switch, .is_group = is_group});
  }
  void add_single(Point at, double radius, NodeId node) {
    add_node(at, radius, node_label(topology_, node), !topology_.is_gpu(node), false, {node});
  }

  /// GPUs row by row, switches that stand alone below.
  void draw_grid(const std::vector<const Place*>& hubs) {
    constexpr double kStep = 46, kRadius = 15;
    margin_ = 22;
    columns_ = grid_columns(topology_);
    const auto at = [&](std::size_t i, std::size_t row) {
      return Point{kStep * static_cast<double>(i % columns_),
                   kStep * static_cast<double>(row + i / columns_)};
    };
    for (std::size_t g = 0; g < topology_.num_gpus(); ++g) {
      add_single(at(g, 0), kRadius, topology_.node_of(GpuId(g)));
    }
    const std::size_t rows = (topology_.num_gpus() + columns_ - 1) / columns_ + 1;
    for (std::size_t h = 0; h < hubs.size(); ++h) add_single(at(h, rows), kRadius, hubs[h]->switches.front());
  }

  /// Links from one end of a row or column of the grid to the other leave the drawing and enter it on the
  /// other side, if all others join neighbours: as a torus is drawn.
  void lead_round() {
    const auto columns = static_cast<int>(columns_);
    const auto gpus = static_cast<int>(topology_.num_gpus());  // drawn first
    const int rows = gpus / columns;
    std::vector<Point> round(drawing_.links.size());
    for (std::size_t l = 0; l < drawing_.links.size(); ++l) {
      const DrawnLink& link = drawing_.links[l];
      if (std::max(link.src, link.dst) >= gpus) return;
      const int across = link.dst % columns - link.src % columns;
      const int down = link.dst / columns - link.src / columns;
      if (std::abs(across) + std::abs(down) == 1) continue;
      if (down == 0 && std::abs(across) == columns - 1) {
        round[l] = {across > 0 ? -1.0 : 1.0, 0};
      } else if (across == 0 && std::abs(down) == rows - 1) {
        round[l] = {0, down > 0 ? -1.0 : 1.0};
      } else {
        return;
      }
    }
    for (std::size_t l = 0; l < round.size(); ++l) drawing_.links[l].round = round[l];
  }

  double radius_of(const Place& place, bool collapse) const {
    if (place.size() == 1) return kNodeRadius;
    if (collapse) return 2 * kNodeRadius;
    double inner = place.switches.empty() ? 0 : kNodeRadius;
    if (place.switches.size() > 1) inner += circle_radius(place.switches.size(), kNodeRadius, 8);
    const double ring = std::max(circle_radius(place.gpus.size(), kNodeRadius, 16), inner + kNodeRadius + 14);
    return ring + kNodeRadius + 12;
  }

  /// Where the GPUs of a place stand: on a circle, in their order, turned or mirrored so that those with
  /// links to other places are near them.
  std::vector<Point> seats(const Place& place, Point at, double ring) const {
    const std::size_t n = place.gpus.size();
    // Half a step aside, so that what goes up, down or across passes between them.
    const double first_angle = -kPi / 2 + kPi / static_cast<double>(std::max<std::size_t>(1, n));
    std::vector<std::vector<Point>> pulls(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto pull = [&](NodeId other) {
        const auto other_place = static_cast<std::size_t>(places_.of_node[other.index()]);
        if (&places_.all[other_place] != &place) pulls[i].push_back(centre_[other_place]);
      };
      for (const LinkId l : topology_.out_links(place.gpus[i])) pull(topology_.link(l).dst);
      for (const LinkId l : topology_.in_links(place.gpus[i])) pull(topology_.link(l).src);
    }
    std::vector<Point> best;
    double least = 0;
    for (const bool mirrored : {false, true}) {
      for (std::size_t turn = 0; turn < n; ++turn) {
        std::vector<Point> seated(n);
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t seat = (turn + (mirrored ? n - i : i)) % n;
          seated[i] = on_circle(at, ring, seat, n, first_angle);
          for (const Point& to : pulls[i]) sum += std::hypot(to.x - seated[i].x, to.y - seated[i].y);
        }
        if (!best.empty() && sum >= least * (1 - 1e-9)) continue;
        best = std::move(seated);
        least = sum;
      }
    }
    return best;
  }

  void draw_place(const Place& place, Point at, double radius, bool collapse) {
    if (place.size() == 1) {
      add_single(at, radius, place.gpus.empty() ? place.switches.front() : place.gpus.front());
      return;
    }
    if (collapse) {
      std::vector<NodeId> members = place.gpus;
      members.insert(members.end(), place.switches.begin(), place.switches.end());
      add_node(at, radius, place.label, false, true, members);
      return;
    }
    drawing_.places.push_back({at, radius, place.label});
    const std::vector<Point> seated = seats(place, at, radius - kNodeRadius - 12);
    for (std::size_t i = 0; i < seated.size(); ++i) add_single(seated[i], kNodeRadius, place.gpus[i]);
    const std::size_t n = place.switches.size();
    for (std::size_t i = 0; i < n; ++i) {
      add_single(on_circle(at, circle_radius(n, kNodeRadius, 8), i, n, 0), kNodeRadius, place.switches[i]);
    }
  }

  /// Groups on a ring, switches between them inside it. Two groups stand side by side.
  void draw_ring(const std::vector<const Place*>& groups, const std::vector<const Place*>& hubs,
                 bool collapse) {
    double widest = 0;
    for (const Place* place : groups) widest = std::max(widest, radius_of(*place, collapse));
    const double gap = widest > 2 * kNodeRadius ? 46 : 18;
    double inner = hubs.size() > 1 ? circle_radius(hubs.size(), kNodeRadius, 24) : 0;
    if (groups.size() == 2 && hubs.size() > 1) inner = 0;  // a column of them
    double ring = groups.size() > 1 ? circle_radius(groups.size(), widest, gap) : 0;
    if (!hubs.empty()) ring = std::max(ring, inner + kNodeRadius + widest + 60);
    const double first_angle = groups.size() == 2 ? kPi : -kPi / 2;
    centre_.resize(places_.all.size());
    const auto centre_of = [&](const Place* place) -> Point& {
      return centre_[static_cast<std::size_t>(place - places_.all.data())];
    };
    for (std::size_t i = 0; i < groups.size(); ++i) {
      centre_of(groups[i]) = on_circle({}, ring, i, groups.size(), first_angle);
    }
    for (std::size_t h = 0; h < hubs.size(); ++h) {
      const double from_middle = static_cast<double>(h) - static_cast<double>(hubs.size() - 1) / 2;
      centre_of(hubs[h]) = groups.size() == 2 ? Point{0, from_middle * (2 * kNodeRadius + 24)}
                                              : on_circle({}, inner, h, hubs.size(), -kPi / 2);
    }
    for (const Place* group : groups)
      draw_place(*group, centre_of(group), radius_of(*group, collapse), collapse);
    for (const Place* hub : hubs) add_single(centre_of(hub), kNodeRadius, hub->switches.front());
  }

  void add_links() {
    std::map<std::pair<int, int>, std::vector<LinkId>> between;
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.links()[l];
      const int src = drawn_[link.src.index()];
      const int dst = drawn_[link.dst.index()];
      if (src == dst) {
        drawing_.nodes[static_cast<std::size_t>(src)].inside.push_back(LinkId(l));
      } else {
        between[{src, dst}].push_back(LinkId(l));
      }
    }
    for (auto& [ends, links] : between) {
      drawing_.links.push_back({ends.first, ends.second, std::move(links)});
    }
  }

  /// Moves everything so that the drawing begins at (0, 0).
  void crop() {
    Point low{1e300, 1e300}, high{-1e300, -1e300};
    const auto include = [&](Point at, double radius, double above) {
      low = {std::min(low.x, at.x - radius), std::min(low.y, at.y - radius - above)};
      high = {std::max(high.x, at.x + radius), std::max(high.y, at.y + radius)};
    };
    for (const DrawnNode& node : drawing_.nodes) include(node.at, node.radius + margin_, 0);
    for (const DrawnPlace& place : drawing_.places) include(place.at, place.radius + 2, 20);
    drawing_.width = high.x - low.x;
    drawing_.height = high.y - low.y;
    for (DrawnNode& node : drawing_.nodes) node.at = {node.at.x - low.x, node.at.y - low.y};
    for (DrawnPlace& place : drawing_.places) place.at = {place.at.x - low.x, place.at.y - low.y};
  }

  const Topology& topology_;
  const Places& places_;
  double margin_ = 12;
  std::size_t columns_ = 0;    ///< of the grid; 0: it is no grid
  std::vector<Point> centre_;  ///< per place, where places are drawn on a ring
  TopologyDrawing drawing_;
  std::vector<int> drawn_;
};

}  // namespace

TopologyDrawing draw_fabric(const Topology& topology, const Places& places) {
  return Layout(topology, places).draw();
}

}  // namespace rondo::pictures
