#include "rondo/profile/profile.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "alone.hpp"
#include "clusters.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "sharing.hpp"

namespace rondo::profile {
namespace {

constexpr double kSlowerThanPeers = 0.8;
constexpr double kLaterThanPeers = 1.5;

void check_options(const Wire& wire, const ProfileOptions& options) {
  if (options.passes < kLeastPasses) {
    throw Error(ExitCode::usage,
                fmt::format("--passes is {}; errors are told from the differences of {} or more",
                            options.passes, kLeastPasses));
  }
  if (!(options.max_bytes >= kLeastLongBytes) || options.max_bytes > 1e9) {
    throw Error(
        ExitCode::usage,
        fmt::format("--max-bytes is {}; bandwidth shows in messages of {} or more, and 1 GB is enough",
                    format_size(options.max_bytes), format_size(kLeastLongBytes)));
  }
  if (wire.size() > kMostRanks) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("{} ranks have {} pairs of links, each of which is timed together; at most {} ranks are "
                    "profiled at once; start one rank for each kind of place, and compose the rest",
                    wire.size(), wire.size() * wire.size() * wire.size() * wire.size() / 2, kMostRanks));
  }
}

/// Links whose peers (all within clusters, or all between them) are better by far.
std::vector<SlowLink> find_slow(const FabricProfile& profile) {
  std::vector<SlowLink> slow;
  const auto crosses = [&](const LinkFigures& link) {
    return profile.cluster[static_cast<std::size_t>(link.from)] !=
           profile.cluster[static_cast<std::size_t>(link.to)];
  };
  for (std::size_t l = 0; l < profile.links.size(); ++l) {
    const LinkFigures& link = profile.links[l];
    std::vector<double> GBps;
    std::vector<double> latency;
    for (const LinkFigures& peer : profile.links) {
      if (crosses(peer) != crosses(link)) continue;
      GBps.push_back(peer.GBps.value);
      latency.push_back(peer.latency_us.value);
    }
    if (GBps.size() < 3) continue;
    const double usual_GBps = median(GBps);
    const double usual_us = median(latency);
    std::string why;
    if (link.GBps.value + link.GBps.error < kSlowerThanPeers * usual_GBps) {
      why = fmt::format("{:.4g} GB/s, its peers {:.4g}", link.GBps.value, usual_GBps);
    }
    if (link.latency_us.value - link.latency_us.error > kLaterThanPeers * usual_us) {
      why += fmt::format("{}{:.4g} us, its peers {:.4g}", why.empty() ? "" : "; ", link.latency_us.value,
                         usual_us);
    }
    if (!why.empty()) slow.push_back({l, why});
  }
  return slow;
}

}  // namespace

FabricProfile measure_fabric(Wire& wire, const ProfileOptions& options) {
  check_options(wire, options);
  FabricProfile profile;
  profile.ranks = wire.size();
  profile.links = measure_alone(wire, options);
  profile.cluster = find_clusters(profile.ranks, profile.links);
  profile.groups = find_groups(wire, options, profile.links);
  const auto wide = find_wide_groups(wire, options, profile.links, profile.groups, profile.cluster);
  profile.groups.insert(profile.groups.end(), wide.begin(), wide.end());
  profile.slow = find_slow(profile);
  return profile;
}

}  // namespace rondo::profile
