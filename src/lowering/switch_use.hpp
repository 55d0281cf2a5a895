#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/lowering/lowering.hpp"
#include "rondo/msccl/program.hpp"

/// What the switches of a schedule do, which programs of MSCCL cannot say and plans of MSCCL++ can.
namespace rondo::lowering {

/// GPU, threadblock and number of a step.
using StepPlace = std::tuple<int, int, int>;

/// Sends of one GPU that are copies of one, by a number of them all and the instance.
using MulticastSteps = std::map<std::pair<int, int>, std::vector<StepPlace>>;

/// A switch adds what all GPUs have at `from` and stores the sum at `to` of all GPUs.
struct SwitchSum {
  msccl::Range from = {};
  msccl::Range to = {};
  int count = 0;
  int instance = 0;
};

struct Lowered {
  msccl::Program program = {};  ///< does all but `sums`
  MulticastSteps multicasts = {};
  std::vector<SwitchSum> sums = {};
};

/// lower(), save that a switch may add a chunk up for all GPUs at once. `node_of`: one a GPU; only switches
/// inside a node do that.
Lowered lower_with_switches(const ProvenSchedule& proven, const LoweringOptions& options,
                            const std::vector<int>& node_of);

/// Per chunk whether one switch adds it up for all: every GPU gives to the sum and gets it, over a link each
/// way. All of 0 where the GPUs are of several nodes.
std::vector<char> summed_by_switch(const ProvenSchedule& proven, const std::vector<int>& node_of);

}  // namespace rondo::lowering
