#pragma once

#include <cstddef>
#include <vector>

#include "rondo/core/cheapest_messages.hpp"

namespace rondo::certificates {

/// A way that messages may take, whenever they start and end.
struct MessageWay {
  std::size_t from = 0;  ///< nodes
  std::size_t to = 0;
  std::vector<PaidMessage::Step> steps = {};
  double latency_us = 0;  ///< of all links
  double message_us = 0;  ///< the greatest of any link
};

/// All of them that come to no node twice. Throws Error(bad_data) for more than can be looked at.
std::vector<MessageWay> message_ways(const Topology& topology);

}  // namespace rondo::certificates
