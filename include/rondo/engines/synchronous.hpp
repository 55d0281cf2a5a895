#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/satisfiability.hpp"

/// Synchronous algorithms (SCCL, PPoPP 2021, section 3): all GPUs work in steps, what a step sends has
/// arrived before the next one begins, and a step takes some rounds, in each of which every link carries a
/// few chunks.
namespace rondo {

/// Data that some GPU has and others want, in `StepInstance::chunks` equal chunks that are alike.
struct StepDatum {
  int origin = 0;
  std::vector<int> wanted = {};  ///< not the origin
};

/// What carries chunks from GPU to GPU.
struct StepArc {
  int from = 0;
  int to = 0;
};

/// In every round the arcs carry at most so many chunks together.
struct StepBound {
  std::vector<int> arcs = {};
  int chunks = 1;
};

/// The question whether there is an algorithm of so many chunks, steps and rounds. No two bounds name the
/// same arc.
struct StepInstance {
  int num_gpus = 0;
  std::vector<StepArc> arcs = {};
  std::vector<StepBound> bounds = {};
  std::vector<StepDatum> data = {};
  int chunks = 1;  ///< of each datum
  int steps = 1;
  int rounds = 1;  ///< of all steps together, each of which has one at least
};

struct StepSend {
  int chunk = 0;  ///< datum * chunks + the chunk's number
  int arc = 0;
  int step = 0;  ///< from 0 on
};

/// An answer: how many rounds each step has, and who sends what.
struct StepPlan {
  std::vector<int> rounds = {};
  std::vector<StepSend> sends = {};  ///< by step, chunk and arc
};

/// An automorphism of an instance all of whose powers but the identity move every GPU.
struct StepTurn {
  int order = 1;
  std::vector<int> gpu = {};              ///< the image of each
  std::vector<int> arc = {};              ///< likewise
  std::vector<int> datum = {};            ///< likewise
  std::vector<bool> is_first_bound = {};  ///< of those that are one another's images
};
/// The one of greatest order among the first that are found; none where there is none.
std::optional<StepTurn> find_turn(const StepInstance& instance);

/// The instance as a formula, which is satisfiable if and only if there is an algorithm; with `turn`, one
/// that is its own image.
struct StepFormula {
  Cnf cnf = {};
  std::function<StepPlan(const std::vector<char>& value)> decode = nullptr;
};
StepFormula encode_steps(const StepInstance& instance, const StepTurn* turn = nullptr);

/// The instance that asks for `demand` in its chunks; arcs have the numbers of the links, and the slowest one
/// carries a chunk a round. Throws Error(unavailable) for switches, groups that share bandwidth, bandwidths
/// that are no small multiples of the least, chunks of different bytes and data that are not ready at 0.
StepInstance make_step_instance(const Topology& topology, const Demand& demand, int steps, int rounds);

/// The steps that data need at least: the farthest way from an origin to who wants it.
int least_steps(const StepInstance& instance);

struct StepAnswer {
  SatStatus status = SatStatus::unknown;
  std::optional<StepPlan> plan = std::nullopt;  ///< where satisfiable
  std::int64_t conflicts = 0;
  int variables = 0;  ///< of the formula that gave the answer
  std::int64_t clauses = 0;
};

/// Answers the question. A step of r rounds can be taken apart into r steps, so an algorithm of fewer steps
/// and as many rounds will do, and is often found sooner, as is one that is its own image under a turn: all
/// are tried, with more and more conflicts. `proof`: where a refutation goes, with its formula beside it in
/// FILE.cnf. Throws Error(io) where they cannot be written.
StepAnswer find_steps(const StepInstance& instance, const SatSolver& solver, const SatLimits& limits,
                      const std::filesystem::path& proof = {});

/// The plan on the links of `topology`, every transfer as early as its order allows. On a link whose messages
/// cost, all chunks of a step go in one transfer if `join`.
Schedule schedule_of(const StepPlan& plan, const Topology& topology, const Demand& demand, bool join);

/// What SCCL's cost model says of an algorithm: every step costs the greatest latency and message cost of a
/// link, every round a chunk's time on the slowest link.
double step_cost_us(const Topology& topology, const Demand& demand, int steps, int rounds);

}  // namespace rondo
