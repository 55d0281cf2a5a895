#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/core/topology.hpp"

/// One schedule for fabrics of which nobody knows which it will run on.
namespace rondo {

/// Name of the problem's own fabric among the scenarios.
inline constexpr const char* kOwnFabric = "own";

/// A fabric with the nodes of the problem's; links and their figures may be others.
struct Scenario {
  std::string name;  ///< not kOwnFabric
  std::shared_ptr<const Topology> topology;
};

enum class ScenarioObjective { worst, mean };  ///< of the finishes over all fabrics

struct Scenarios {
  ScenarioObjective objective = ScenarioObjective::worst;
  std::vector<Scenario> all = {};  ///< besides the problem's own fabric
};

/// How a schedule fares on one fabric, with its chunks, paths and order (rondo/core/retiming.hpp).
struct ScenarioOutcome {
  std::string name;
  double finish_us = 0;
  std::optional<LowerBound> lower_bound = {};  ///< of any schedule made for that fabric alone
};

struct Robustness {
  ScenarioObjective objective = ScenarioObjective::worst;
  std::vector<ScenarioOutcome> each = {};  ///< the problem's own fabric first
  std::string made_for = {};               ///< the fabric that the schedule was made for
  /// The objective of the schedule that was made for the problem's own fabric; infinite where it goes over
  /// links that another fabric does not have.
  double own_us = 0;

  double figure_us() const;  ///< the worst finish, or the mean
  /// The same of the bounds: below it no schedule's figure is. A bound that is not there counts as 0.
  double bound_us() const;
};

}  // namespace rondo
