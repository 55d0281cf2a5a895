#include "rondo/core/even_links.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace rondo {
namespace {

constexpr double kRounding = 1e-9;

/// Share of what carries `GBps` that whole transfers at `rate_GBps` take.
double filled(double GBps, double rate_GBps) {
  return std::floor(GBps / rate_GBps * (1 + kRounding)) * rate_GBps / GBps;
}

enum class Side { behind, before };

/// What a transfer passes between a switch and the end of its section.
struct Rest {
  bool ends = false;  ///< whether it comes to an end over no slower link
  std::set<double> wider_GBps;
};

class Sections {
 public:
  explicit Sections(const Topology& topology) : topology_(topology), groups_of_(topology.num_links()) {
    for (const SharedBandwidth& group : topology.shared_bandwidth())
      for (const LinkId l : group.links) groups_of_[l.index()].push_back(group.bandwidth_GBps);
  }

  /// Of the sections in which `link` is the slowest one; empty where there is none, or nothing wider.
  std::vector<double> wider_than(LinkId link) {
    const Link& data = topology_.link(link);
    const Rest& behind = rest(data.dst, data.bandwidth_GBps, Side::behind);
    const Rest& before = rest(data.src, data.bandwidth_GBps, Side::before);
    if (!behind.ends || !before.ends) return {};
    std::set<double> wider = behind.wider_GBps;
    wider.insert(before.wider_GBps.begin(), before.wider_GBps.end());
    add_wider(groups_of_[link.index()], data.bandwidth_GBps, wider);
    return {wider.begin(), wider.end()};
  }

 private:
  static void add_wider(std::span<const double> GBps, double least_GBps, std::set<double>& wider) {
    for (const double figure : GBps)
      if (figure > least_GBps * (1 + kRounding)) wider.insert(figure);
  }

  bool ends_at(NodeId n) const {
    return topology_.is_gpu(n) || topology_.node(n).forwarding != Forwarding::cut_through;
  }

  /// Over links of at least `least_GBps`. Many links lead to one switch, so that answers are kept.
  const Rest& rest(NodeId from, double least_GBps, Side side) {
    const auto [known, is_new] = known_.try_emplace({from, least_GBps, side});
    Rest& rest = known->second;
    if (!is_new) return rest;
    std::vector<char> seen(topology_.num_nodes(), 0);
    std::vector<NodeId> open{from};
    seen[from.index()] = 1;
    while (!open.empty()) {
      const NodeId n = open.back();
      open.pop_back();
      if (ends_at(n)) {
        rest.ends = true;
        continue;
      }
      for (const LinkId l : side == Side::behind ? topology_.out_links(n) : topology_.in_links(n)) {
        const Link& link = topology_.link(l);
        if (link.bandwidth_GBps < least_GBps * (1 - kRounding)) continue;
        add_wider(std::span(&link.bandwidth_GBps, 1), least_GBps, rest.wider_GBps);
        add_wider(groups_of_[l.index()], least_GBps, rest.wider_GBps);
        const NodeId next = side == Side::behind ? link.dst : link.src;
        if (std::exchange(seen[next.index()], 1) == 0) open.push_back(next);
      }
    }
    return rest;
  }

  const Topology& topology_;
  std::vector<std::vector<double>> groups_of_;
  std::map<std::tuple<NodeId, double, Side>, Rest> known_;
};

/// Whether a transfer at one of the fabric's figures may be better at a lower rate for the sake of another.
bool may_be_uneven(const Topology& topology) {
  std::set<double> figures;
  for (const Link& link : topology.links()) figures.insert(link.bandwidth_GBps);
  for (const SharedBandwidth& group : topology.shared_bandwidth()) figures.insert(group.bandwidth_GBps);
  for (const double GBps : figures)
    for (auto wider = figures.upper_bound(GBps); wider != figures.end(); ++wider)
      if (even_rate_GBps(GBps, std::span(&*wider, 1)) < GBps) return true;
  return false;
}

}  // namespace

double even_rate_GBps(double GBps, std::span<const double> wider_GBps) {
  double best_GBps = GBps;
  double greatest = 0;
  const auto consider = [&](double rate_GBps) {
    double least = 1;
    for (const double wider : wider_GBps) least = std::min(least, filled(wider, rate_GBps));
    const double product = least * rate_GBps / GBps;
    const double slack = kRounding * greatest;
    if (product < greatest - slack || (product <= greatest + slack && rate_GBps <= best_GBps)) return;
    greatest = product;
    best_GBps = rate_GBps;
  };
  consider(GBps);
  for (const double wider : wider_GBps) consider(wider / std::ceil(wider / GBps * (1 - kRounding)));
  return best_GBps < GBps * (1 - kRounding) ? best_GBps : GBps;
}

std::optional<Topology> with_even_links(const Topology& topology) {
  if (topology.has_bandwidth_steps() || !may_be_uneven(topology)) return std::nullopt;
  TopologyData data = topology.data();
  Sections sections(topology);
  bool is_any_slower = false;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    double& GBps = data.links[l].bandwidth_GBps;
    const double rate_GBps = even_rate_GBps(GBps, sections.wider_than(LinkId{l}));
    is_any_slower = is_any_slower || rate_GBps < GBps;
    GBps = rate_GBps;
  }
  if (!is_any_slower) return std::nullopt;
  return Topology(std::move(data));
}

}  // namespace rondo
