#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/bounds/bounds.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/sketch.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/toolbox.hpp"
#include "rondo/pipeline/dealt_schedule.hpp"
#include "rondo/pipeline/options.hpp"
#include "rondo/pipeline/run_context.hpp"
#include "rondo/pipeline/scenarios.hpp"
#include "rondo/pipeline/sharing.hpp"

/// The main job: a topology and a demand in, a proven schedule out.
namespace rondo {

/// A problem with its options.
struct Problem {
  std::shared_ptr<const Topology> topology;
  Demand demand;  ///< one chunk a contribution; options.chunks splits it
  SolveOptions options = {};
  std::shared_ptr<const ProvenSchedule> start = nullptr;  ///< what options.from names; verified
  /// What it asks for beside the links, which `topology` has already; for engines that heed all of it.
  std::shared_ptr<const Sketch> sketch = nullptr;
  /// Other fabrics that the schedule is to be good on too; null: none.
  std::shared_ptr<const Scenarios> scenarios = nullptr;
  /// Of sums for several GPUs each, a schedule in halves (halves.hpp) that is there already, in place of one
  /// that would be made of halves.
  std::shared_ptr<const ProvenSchedule> halves = nullptr;
  /// Of this topology and demand, where they are known; null: to be derived.
  std::shared_ptr<const Bounds> bounds = nullptr;
  /// One that holds here and took no work, as from a certificate of another size or fabric: others are
  /// derived only where it does not prove what becomes of `start` near enough. Null: none.
  std::shared_ptr<const LowerBound> known_bound = nullptr;
  /// Of the work of list scheduling, what it is worth: less where its schedules become part of others.
  double list_share = 1;
  /// Whether its schedule becomes part of another one: its bound tells no more than when to stop.
  bool is_part = false;
  /// Whether it is a transposed problem, whose schedule is turned round in the end.
  bool backwards = false;

  Instance instance() const {
    Instance result{topology, demand};
    result.backwards = backwards;
    result.is_part = is_part;
    return result;
  }
};

/// What bounds and engines work with as the options have it: the LP solver, columns over all ranks, parts.
/// Must outlive neither the context nor what it refers to. Throws Error for options that do not go together.
Toolbox prepare_toolbox(const SolveOptions& options, const RunContext& context);

struct SynthesisResult {
  ProvenSchedule proven;  ///< replayed; bound derived from its certificate
  /// Where `proven` has on each rank the sends of its own chunks alone; never unless RunContext::deals.
  std::optional<DealtSchedule> dealt = std::nullopt;
  double gap = 0;           ///< finish / bound - 1
  std::string engine = {};  ///< that won, with its policy and seed: "list/rarest/3"
  std::uint64_t seed = 0;
  std::map<std::string, double> metrics = {};       ///< see EngineResult
  std::map<std::string, double> wall_parts_s = {};  ///< "bounds", "search", "improvement" ...
  std::vector<std::string> limits_hit = {};
  std::vector<std::string> remarks = {};
  struct Candidate {
    std::string engine;
    int chunks = 0;
    double finish_us = 0;
  };
  std::vector<Candidate> candidates = {};  ///< the best of each engine, what the others gave
  struct Trade {
    double finish_us = 0;
    std::size_t sends = 0;
    std::size_t most_sends_on_a_link = 0;  ///< a lower bound of the steps of an executor's threadblock
  };
  std::map<int, Trade> by_chunks = {};                  ///< the best of each number of chunks that was tried
  std::optional<Sharing> sharing = std::nullopt;        ///< of several tenants
  std::optional<Robustness> robustness = std::nullopt;  ///< over several fabrics
  std::vector<RoundRecord> rounds = {};  ///< engine rounds: what each did, without its sends and state
};

/// Throws what synthesize() would throw, after its bounds, for options that do not fit the problem.
void check_options(const Problem& problem);

/// Collective. Bounds the finish time, explores a portfolio of engines, chunk counts, policies and seeds
/// dealt over the ranks (or the one engine asked for), improves the best schedule, replays and proves it. The
/// same schedule on any number of ranks unless a time limit is set. Throws Error(unavailable) when an engine
/// does not support the problem or a limit came before any schedule.
SynthesisResult synthesize(const Problem& problem, const RunContext& context);

}  // namespace rondo
