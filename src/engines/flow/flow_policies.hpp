#pragma once

#include <string>
#include <vector>

#include "rondo/flows/rounding.hpp"
#include "route_scheduling.hpp"

namespace rondo {

/// At which rates transfers run.
enum class FlowRates {
  whole,     ///< of their slowest links
  alone,     ///< the same, but none beside another on a link: what slow ones leave of fast links stays idle
  fitting,   ///< divided so that links are filled (rate_divisors)
  fine,      ///< divided by as many as may go at a time: paths over many links get in each other's way less
  constant,  ///< all at once, each as slow as the whole schedule; in slots of as many as may go at a time
};

struct FlowPolicy {
  std::string name;
  RoutingStart start;
  RouteOrder order;
  bool by_orbits = false;  ///< decided for the representatives of orbits, see orbit_problem.hpp
  FlowRates rates = FlowRates::whole;
};

/// The first one is the default.
const std::vector<FlowPolicy>& flow_policy_table();

/// The first policy that rounds to the same routes: they differ in the order of chunks alone.
const FlowPolicy& beginning_of(const FlowPolicy& policy);
/// Whether there is another one that does.
bool others_begin_alike(const FlowPolicy& policy);

}  // namespace rondo
