#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "rondo/core/topology.hpp"
#include "rondo/profile/wire.hpp"

/// What the links between ranks are worth, measured.
namespace rondo::profile {

inline constexpr int kLeastPasses = 3;
/// Beyond it the pairs of links, each of which is timed together, are too many.
inline constexpr int kMostRanks = 24;
inline constexpr double kLeastLongBytes = 65536;

struct ProfileOptions {
  int passes = 5;          ///< over all pairs; their differences are a part of the stated errors
  double max_bytes = 4e6;  ///< of the longest message
  double slower = 1.15;    ///< flows share where one takes so many times as long together as alone
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// A value and two standard errors.
struct Figure {
  double value = 0;
  double error = 0;
};

/// t = latency + n (message + bytes / bandwidth) is the time of n messages, one after another.
struct LinkFigures {
  int from = 0;
  int to = 0;
  Figure latency_us = {};
  Figure message_us = {};
  Figure GBps = {};
  double answer_us = 0;  ///< what is left of the time of one message of no bytes with its answer
};

/// Links that are slower together than alone.
struct SharedGroup {
  std::string name;
  std::vector<std::size_t> links;
  double GBps = 0;
};

struct SlowLink {
  std::size_t link = 0;
  std::string why;
};

struct FabricProfile {
  int ranks = 0;
  std::vector<LinkFigures> links;  ///< from 0 to 1, 0 to 2, ..., 1 to 0, ...
  std::vector<SharedGroup> groups;
  std::vector<int> cluster;  ///< a rank; numbered by first member; all 0 where none stand out
  std::vector<SlowLink> slow;
};

/// Collective. Times every pair of ranks alone, then every pair of links together, then what is left to be
/// shared by more than two. Throws Error(usage) for fewer passes than kLeastPasses or bytes than
/// kLeastLongBytes, Error(unavailable) beyond kMostRanks, Error(bad_data) where the times tell no bandwidth,
/// latency or message cost.
FabricProfile measure_fabric(Wire& wire, const ProfileOptions& options);

/// Least squares over times of one link: t = constant + n message + n bytes byte_us, each time weighted by
/// its own size.
struct LineFit {
  Figure constant_us;
  Figure message_us;
  Figure byte_us;
};
struct TimedMessages {
  int messages = 1;
  double bytes = 0;
  double us = 0;
};
/// Throws Error(bad_data) where samples do not tell the three apart.
LineFit fit_line(const std::vector<TimedMessages>& samples);

/// One GPU a rank, a link for every pair in both directions, groups as shared bandwidth, clusters as chassis.
/// Figures that agree within 3 % or their errors are made equal (their median), so that what is symmetric
/// reads so.
Topology to_topology(const FabricProfile& profile, const std::string& name);

/// Tables of links, groups, slow links and clusters.
std::string describe(const FabricProfile& profile);
/// Figures and errors of every link, separated by tabs.
std::string to_tsv(const FabricProfile& profile);

}  // namespace rondo::profile
