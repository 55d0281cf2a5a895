#include "rondo/core/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "alone.hpp"
#include "rondo/profile/profile.hpp"

namespace rondo::profile {
namespace {

constexpr double kEqual = 1.03;
constexpr std::size_t kMostLines = 24;

/// Values that agree with the least of their class within 3 % or its error become the class's median.
std::vector<double> made_equal(const std::vector<Figure>& figures) {
  std::vector<std::size_t> order(figures.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::less<>{}, [&](std::size_t k) { return figures[k].value; });
  std::vector<double> values(figures.size());
  for (std::size_t begin = 0; begin < order.size();) {
    const Figure& least = figures[order[begin]];
    const double reach = std::max(kEqual * least.value, least.value + least.error);
    std::vector<double> members;
    std::size_t end = begin;
    while (end < order.size() && figures[order[end]].value <= reach)
      members.push_back(figures[order[end++]].value);
    const double common = median(members);
    for (; begin < end; ++begin) values[order[begin]] = common;
  }
  return values;
}

template <class Get>
std::vector<Figure> figures_of(const std::vector<LinkFigures>& links, const Get& get) {
  std::vector<Figure> figures;
  for (const LinkFigures& link : links) figures.push_back(get(link));
  return figures;
}

/// "24.9 to 25.1 GB/s, errors up to 0.1".
std::string range_text(const std::vector<Figure>& figures, const char* unit) {
  double least = figures.front().value;
  double most = least;
  double error = 0;
  for (const Figure& figure : figures) {
    least = std::min(least, figure.value);
    most = std::max(most, figure.value);
    error = std::max(error, figure.error);
  }
  const std::string range = fmt::format("{:.4g}", least) == fmt::format("{:.4g}", most)
                                ? fmt::format("{:.4g}", least)
                                : fmt::format("{:.4g} to {:.4g}", least, most);
  return fmt::format("{} {} (error {:.2g})", range, unit, error);
}

std::string links_text(const std::vector<LinkFigures>& links, const std::string& title) {
  if (links.empty()) return "";
  return fmt::format("{}: {} links, latency {}, message cost {}, bandwidth {}\n", title, links.size(),
                     range_text(figures_of(links, [](const LinkFigures& l) { return l.latency_us; }), "us"),
                     range_text(figures_of(links, [](const LinkFigures& l) { return l.message_us; }), "us"),
                     range_text(figures_of(links, [](const LinkFigures& l) { return l.GBps; }), "GB/s"));
}

int number_of_clusters(const FabricProfile& profile) {
  return 1 + *std::ranges::max_element(profile.cluster);
}

}  // namespace

Topology to_topology(const FabricProfile& profile, const std::string& name) {
  TopologyData data;
  data.name = name;
  data.source = fmt::format("measured by rondo profile between {} ranks", profile.ranks);
  const bool clusters = number_of_clusters(profile) > 1;
  for (std::size_t r = 0; r < profile.cluster.size(); ++r) {
    Node node{.kind = NodeKind::gpu, .name = fmt::format("rank{}", r)};
    if (clusters) node.chassis = profile.cluster[r];
    data.nodes.push_back(std::move(node));
  }
  const auto latency =
      made_equal(figures_of(profile.links, [](const LinkFigures& l) { return l.latency_us; }));
  const auto message =
      made_equal(figures_of(profile.links, [](const LinkFigures& l) { return l.message_us; }));
  const auto GBps = made_equal(figures_of(profile.links, [](const LinkFigures& l) { return l.GBps; }));
  for (std::size_t l = 0; l < profile.links.size(); ++l) {
    data.links.push_back({.src = NodeId(profile.links[l].from),
                          .dst = NodeId(profile.links[l].to),
                          .bandwidth_GBps = GBps[l],
                          .latency_us = latency[l],
                          .message_us = message[l]});
  }
  std::vector<Figure> shared;
  for (const SharedGroup& group : profile.groups) shared.push_back({group.GBps, 0});
  const std::vector<double> capacity = made_equal(shared);
  for (std::size_t g = 0; g < profile.groups.size(); ++g) {
    SharedBandwidth group{.name = profile.groups[g].name, .links = {}, .bandwidth_GBps = capacity[g]};
    for (const std::size_t l : profile.groups[g].links) group.links.emplace_back(l);
    data.shared_bandwidth.push_back(std::move(group));
  }
  return Topology(std::move(data));
}

std::string describe(const FabricProfile& profile) {
  const int clusters = number_of_clusters(profile);
  std::string text = fmt::format("{} ranks{}\n", profile.ranks,
                                 clusters > 1 ? fmt::format(" in {} clusters of equals", clusters) : "");
  for (int c = 0; c < clusters && clusters > 1; ++c) {
    text += fmt::format("  cluster {}: ranks", c);
    for (std::size_t r = 0; r < profile.cluster.size(); ++r) {
      if (profile.cluster[r] == c) text += fmt::format(" {}", r);
    }
    text += "\n";
  }
  std::vector<LinkFigures> within;
  std::vector<LinkFigures> between;
  for (const LinkFigures& link : profile.links) {
    const bool same = profile.cluster[static_cast<std::size_t>(link.from)] ==
                      profile.cluster[static_cast<std::size_t>(link.to)];
    (same ? within : between).push_back(link);
  }
  text += links_text(within, clusters > 1 ? "within clusters" : "between ranks");
  text += links_text(between, "between clusters");
  text += fmt::format("{} group{} of links that share\n", profile.groups.size(),
                      profile.groups.size() == 1 ? "" : "s");
  for (std::size_t g = 0; g < std::min(kMostLines, profile.groups.size()); ++g) {
    text += fmt::format("  {}: {} links, {:.4g} GB/s together\n", profile.groups[g].name,
                        profile.groups[g].links.size(), profile.groups[g].GBps);
  }
  if (profile.groups.size() > kMostLines)
    text += fmt::format("  and {} more\n", profile.groups.size() - kMostLines);
  text += fmt::format("{} slow link{}\n", profile.slow.size(), profile.slow.size() == 1 ? "" : "s");
  for (std::size_t s = 0; s < std::min(kMostLines, profile.slow.size()); ++s) {
    const LinkFigures& link = profile.links[profile.slow[s].link];
    text += fmt::format("  rank {} to rank {}: {}\n", link.from, link.to, profile.slow[s].why);
  }
  if (profile.slow.size() > kMostLines)
    text += fmt::format("  and {} more\n", profile.slow.size() - kMostLines);
  return text;
}

std::string to_tsv(const FabricProfile& profile) {
  std::string text = "from\tto\tlatency_us\terror\tmessage_us\terror\tGBps\terror\n";
  for (const LinkFigures& l : profile.links) {
    text += fmt::format("{}\t{}\t{:.6g}\t{:.3g}\t{:.6g}\t{:.3g}\t{:.6g}\t{:.3g}\n", l.from, l.to,
                        l.latency_us.value, l.latency_us.error, l.message_us.value, l.message_us.error,
                        l.GBps.value, l.GBps.error);
  }
  return text;
}

}  // namespace rondo::profile
