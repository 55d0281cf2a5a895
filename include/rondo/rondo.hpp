#pragma once

#include <string>

#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// Rondo as a library: proven schedules for collective communication between GPUs. This header is all that a
/// program needs; `find_package(Rondo)` gives the target Rondo::rondo.
///
/// ```
/// const auto communicator = rondo::make_local_communicator();
/// const auto topology = std::make_shared<const rondo::Topology>(rondo::load_topology("torus:dims=4x4"));
/// const rondo::Problem problem{topology, rondo::make_demand(*topology, "allgather", 64e6)};
/// const double bound_us = rondo::bound(problem, {*communicator}).best().us;
/// const rondo::SynthesisResult result = rondo::synthesize(problem, {*communicator});
/// rondo::verify(result.proven);
/// rondo::write_schedule("schedule.h5", result.proven);
/// ```
///
/// The steps:
/// - A topology: load_topology() takes a shipped name, a JSON file or a generator; Topology(TopologyData)
///   takes nodes and links; degrade() and without_links_between() damage one.
/// - A demand: make_demand() for a named collective, over all GPUs in equal parts or in the shape given;
///   Demand(Collective::custom, ...) takes contributions, which say who has which bytes and who wants them.
/// - Problem: topology, demand and SolveOptions, whose defaults are those of `rondo solve`.
/// - RunContext: the communicator, and a function that is told of progress, a flag that interrupts. It starts
///   the clock that SolveOptions::time_limit_s goes by: every call gets a context of its own.
/// - bound(), synthesize(), verify(); write_schedule() and read_schedule().
///
/// Units: bytes; microseconds (`_us`); gigabytes a second of 1e9 bytes (`_GBps`). GPUs, nodes, links and
/// chunks count from 0 under types of their own (GpuId, NodeId, LinkId, ChunkId).
///
/// Errors: what a caller can do something about is thrown as Error, with an ExitCode and a sentence that
/// names the value and what would be right. Anything else that is thrown is a fault of Rondo.
///
/// Ranks: make_local_communicator() works in one process and needs no MPI. Under mpirun every rank makes the
/// same calls with make_world_communicator(), while an MpiSession (or the program's own MPI_Init) lives; all
/// get the same result, and one of them writes it. The schedule does not depend on the number of ranks unless
/// a time limit ends the search.
namespace rondo {

/// The demand of a named collective ("allgather", "alltoall", "broadcast", "scatter", "gather") over all GPUs
/// of `topology`, or as `shape` says. `size_bytes`: for AllGather and AllToAll what a GPU ends with, its own
/// part included, as in nccl-tests; else the buffer of `root`, the GPU of Broadcast, Scatter and Gather.
/// Throws Error(usage) for an unknown name, a size that is not positive and finite, or a root out of range.
inline Demand make_demand(const Topology& topology, const std::string& collective, double size_bytes,
                          GpuId root = GpuId{0}, const CollectiveShape& shape = {}) {
  return make_demand(parse_collective(collective), size_bytes, topology.num_gpus(), 1, root, shape);
}

}  // namespace rondo
