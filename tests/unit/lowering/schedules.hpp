#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/engines/engines.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/lowering/lowering.hpp"
#include "rondo/xmlcheck/check.hpp"

namespace rondo::test {

/// What the list engine makes of it, replayed.
inline ProvenSchedule scheduled(const Topology& topology, const Demand& demand) {
  const auto shared = std::make_shared<const Topology>(topology);
  EngineResult result = prepare_list({shared, demand}, {}, {})(demand, {});
  if (topology.has_message_costs()) number_transfers(topology, demand, result.schedule->sends);
  const ReplayResult replayed = replay(topology, demand, result.schedule->sends);
  EXPECT_TRUE(replayed.valid()) << *replayed.violation;
  return {.topology = topology, .demand = demand, .schedule = *result.schedule};
}

/// What the list engine makes of the transposed problem, run backwards; of AllReduce then spread.
inline ProvenSchedule combined(const Topology& topology, Collective collective, int chunks) {
  const int gpus = static_cast<int>(topology.num_gpus());
  const bool is_allreduce = collective == Collective::allreduce;
  const Demand demand =
      make_demand(collective, 1e9, topology.num_gpus(), is_allreduce ? gpus * chunks : chunks);
  const Demand half =
      is_allreduce ? make_demand(Collective::reduce_scatter, 1e9, topology.num_gpus(), chunks) : demand;
  const Topology turned = transposed(topology);
  const ProvenSchedule gather = scheduled(turned, transposed(half));
  ProvenSchedule proven{.topology = topology, .demand = demand, .schedule = {}};
  const double half_us = gather.schedule.finish_us;
  proven.schedule.sends = reversed_in_time(turned, transposed(half), gather.schedule.sends, half_us);
  proven.schedule.finish_us = half_us;
  if (!is_allreduce) return proven;
  const Schedule spread =
      scheduled(topology, make_demand(Collective::allgather, 1e9, topology.num_gpus(), chunks)).schedule;
  for (Send send : spread.sends) {
    send.start_us += half_us;
    send.end_us += half_us;
    send.arrival_us += half_us;
    proven.schedule.sends.push_back(send);
  }
  proven.schedule.finish_us += spread.finish_us;
  canonicalise(proven.schedule);
  return proven;
}

inline LoweringOptions for_executor(const char* name = "msccl") {
  LoweringOptions options;
  options.executor = &msccl::find_executor(name);
  return options;
}

inline std::string text_of(const xmlcheck::CheckResult& result) {
  std::string text;
  for (const xmlcheck::Finding& finding : result.findings) text += finding.where + ": " + finding.what + "\n";
  return text;
}

/// The program, which the checker has to accept, custom demands included.
inline msccl::Program lowered(const ProvenSchedule& proven, const LoweringOptions& options = for_executor()) {
  const msccl::Program program = lower(proven, options);
  const xmlcheck::CheckResult result =
      xmlcheck::check(program, {.executor = options.executor, .demand = &proven.demand});
  EXPECT_TRUE(result.valid()) << text_of(result);
  EXPECT_TRUE(result.knows_result);
  return program;
}

}  // namespace rondo::test
