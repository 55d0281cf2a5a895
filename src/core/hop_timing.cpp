#include "rondo/core/hop_timing.hpp"

#include <algorithm>
#include <limits>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

/// The links of a hop that cut-through switches join, and when each begins after the first.
struct HopSection {
  struct Member {
    std::size_t place;  ///< in the hop
    double offset_us;
  };
  std::vector<Member> members;
  int after = -1;  ///< place of the link at whose end it begins; -1: it leaves the source
};

std::vector<HopSection> sections_of(const Topology& topology, const Hop& hop) {
  std::vector<HopSection> sections;
  std::vector<std::size_t> section(hop.links.size());
  std::vector<double> offset_us(hop.links.size(), 0);
  for (std::size_t i = 0; i < hop.links.size(); ++i) {
    const NodeId from = topology.link(hop.links[i].link).src;
    int before = -1;
    for (std::size_t in = 0; in < i && !topology.is_gpu(from); ++in) {
      if (topology.link(hop.links[in].link).dst == from) before = static_cast<int>(in);
    }
    if (before < 0 || topology.node(from).forwarding != Forwarding::cut_through) {
      section[i] = sections.size();
      sections.push_back({{{i, 0}}, before});
      continue;
    }
    section[i] = section[index(before)];
    offset_us[i] = offset_us[index(before)] + topology.link(hop.links[index(before)].link).latency_us;
    sections[section[i]].members.push_back({i, offset_us[i]});
  }
  return sections;
}

/// What passes at a bandwidth in a time.
double bytes_within(double us, double GBps) {
  return us * GBps * kBytesPerUsPerGBps;
}

/// The least bandwidth of the members from sender's time `t_us` on, and until when it holds.
struct LeastBandwidth {
  double GBps = kForever;
  double until_us = kForever;
};
LeastBandwidth least_from(const Topology& topology, const Hop& hop, const HopSection& section, double t_us) {
  LeastBandwidth least;
  for (const auto& member : section.members) {
    const Link& link = topology.link(hop.links[member.place].link);
    // A change that rounding puts at the time itself has come.
    const double at_us = t_us + member.offset_us;
    const auto next = std::ranges::upper_bound(link.bandwidth_steps, at_us + time_slack_us(at_us) / 2, {},
                                               &BandwidthStep::from_us);
    least.GBps =
        std::min(least.GBps, next == link.bandwidth_steps.begin() ? link.bandwidth_GBps : (next - 1)->GBps);
    if (next != link.bandwidth_steps.end())
      least.until_us = std::min(least.until_us, next->from_us - member.offset_us);
  }
  return least;
}

/// When the last of the bytes leaves that begin to flow at `t_us`.
double end_of_flow(const Topology& topology, const Hop& hop, const HopSection& section, double bytes,
                   double t_us) {
  for (double left = bytes; t_us < kForever;) {
    const LeastBandwidth least = least_from(topology, hop, section, t_us);
    if (least.GBps > 0) {
      const double done_us = t_us + transmission_us(left, least.GBps);
      if (done_us <= least.until_us) return done_us;
      left = std::max(0.0, left - bytes_within(least.until_us - t_us, least.GBps));
    }
    t_us = least.until_us;
  }
  return kForever;
}

/// The same, backwards: when the bytes begin to flow the last of which leaves at `end_us`, or earlier if a
/// link is down then.
HopTiming::Use flow_until(const Topology& topology, const Hop& hop, const HopSection& section, double bytes,
                          double end_us) {
  double last_us = end_us;
  for (double left = bytes;;) {
    // The last change of a member before `end_us`, and the bandwidths since.
    double since_us = -kForever;
    for (const auto& member : section.members) {
      const auto& steps = topology.link(hop.links[member.place].link).bandwidth_steps;
      const double at_us = end_us + member.offset_us;
      const auto next =
          std::ranges::lower_bound(steps, at_us - time_slack_us(at_us) / 2, {}, &BandwidthStep::from_us);
      // The first step holds before time 0 too.
      if (next - steps.begin() > 1) since_us = std::max(since_us, (next - 1)->from_us - member.offset_us);
    }
    double GBps = kForever;
    for (const auto& member : section.members) {
      const Link& link = topology.link(hop.links[member.place].link);
      const double inside_us = since_us == -kForever ? -1 : (since_us + end_us) / 2 + member.offset_us;
      GBps = std::min(GBps, bandwidth_at_GBps(link, inside_us));
    }
    const double starts_us = GBps > 0 ? end_us - transmission_us(left, GBps) : -kForever;
    if (GBps > 0 && starts_us >= since_us) return {starts_us, last_us};
    if (left == bytes && GBps == 0) last_us = since_us;
    left = std::max(0.0, left - bytes_within(end_us - since_us, GBps));
    end_us = since_us;
  }
}

double latency_of(const Topology& topology, const Hop& hop, std::size_t place) {
  return topology.link(hop.links[place].link).latency_us;
}

}  // namespace

double bandwidth_at_GBps(const Link& link, double t_us) {
  const auto& steps = link.bandwidth_steps;
  const auto next = std::ranges::upper_bound(steps, t_us, {}, &BandwidthStep::from_us);
  return next == steps.begin() ? link.bandwidth_GBps : (next - 1)->GBps;
}

double passing_bytes(const Link& link, double from_us, double until_us) {
  const auto& steps = link.bandwidth_steps;
  double bytes = 0;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, steps.size()); ++i) {
    const double begin_us = i == 0 ? from_us : std::max(from_us, steps[i].from_us);
    const double end_us = i + 1 < steps.size() ? std::min(until_us, steps[i + 1].from_us) : until_us;
    const double GBps = steps.empty() ? link.bandwidth_GBps : steps[i].GBps;
    bytes += bytes_within(std::max(0.0, end_us - begin_us), GBps);
  }
  return bytes;
}

HopTiming timing_from(const Topology& topology, const Hop& hop, double bytes, double start_us) {
  HopTiming timing{std::vector<HopTiming::Use>(hop.links.size()), start_us, kForever};
  for (const HopSection& section : sections_of(topology, hop)) {
    double begins_us = start_us;
    if (section.after >= 0) {
      begins_us = timing.uses[index(section.after)].end_us +
                  latency_of(topology, hop, static_cast<std::size_t>(section.after));
    }
    const double flows_us = begins_us + hop.links[section.members.front().place].message_us;
    const double ends_us = end_of_flow(topology, hop, section, bytes, flows_us);
    for (const auto& member : section.members)
      timing.uses[member.place] = {begins_us + member.offset_us, ends_us + member.offset_us};
  }
  const std::size_t last = hop.links.size() - 1;
  timing.arrival_us = timing.uses[last].end_us + latency_of(topology, hop, last);
  return timing;
}

HopTiming timing_until(const Topology& topology, const Hop& hop, double bytes, double arrival_us) {
  HopTiming timing{std::vector<HopTiming::Use>(hop.links.size()), arrival_us, arrival_us};
  const std::vector<HopSection> sections = sections_of(topology, hop);
  for (auto section = sections.rbegin(); section != sections.rend(); ++section) {
    const auto& last = section->members.back();
    const auto [flows_us, ends_us] =
        flow_until(topology, hop, *section, bytes,
                   timing.start_us - latency_of(topology, hop, last.place) - last.offset_us);
    if (section == sections.rbegin())
      timing.arrival_us = ends_us + last.offset_us + latency_of(topology, hop, last.place);
    timing.start_us = flows_us - hop.links[section->members.front().place].message_us;
    for (const auto& member : section->members)
      timing.uses[member.place] = {timing.start_us + member.offset_us, ends_us + member.offset_us};
  }
  return timing;
}

double up_from(const Topology& topology, const Hop& hop, double t_us) {
  const HopSection first = sections_of(topology, hop).front();
  const double message_us = hop.links.front().message_us;
  for (double at_us = t_us + message_us; at_us < kForever;) {
    const LeastBandwidth least = least_from(topology, hop, first, at_us);
    if (least.GBps > 0) return std::max(t_us, at_us - message_us);
    at_us = least.until_us;
  }
  return kForever;
}

}  // namespace rondo
