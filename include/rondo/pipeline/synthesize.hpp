#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/epoch_grid.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/engines/rounds.hpp"
#include "rondo/model/solver.hpp"
#include "rondo/parallel/checkpoints.hpp"
#include "rondo/parallel/communicator.hpp"

/// The main job: a topology and a demand in, a proven schedule out.
namespace rondo {

struct SolveOptions {
  std::string engine = "auto";
  std::string policy = {};         ///< "" = the engine's default (auto: all)
  int chunks = 0;                  ///< chunks a contribution; 0 = auto
  double min_chunk_bytes = 1024;   ///< auto never splits below it
  std::optional<double> gap = {};  ///< stop once finish / bound - 1 <= gap
  std::optional<double> time_limit_s = {};
  /// Work of large-neighbourhood search on the best schedule, in sends; 0: none. With `gap` ten times as
  /// much.
  double improve_work = 2.5e6;
  std::uint64_t seed = 0;
  bool symmetry = true;                 ///< whether the symmetry of topology and demand is made use of
  EpochOptions epochs = {};             ///< engines lp and milp
  std::string lp_solver = "auto";       ///< one of lp_solvers()
  std::optional<double> flow_gap = {};  ///< that columns are proven to; absent: see prepare_toolbox.cpp
  double lp_tolerance = 1e-6;           ///< of pdhg: relative, of both residuals and of the duality gap
  std::int64_t max_nodes = -1;          ///< engines milp and rounds; -1 = their default
  std::string decompose = "none";       ///< engine rounds: one of decompositions()
  int parts = 0;                        ///< 0 = the decomposition's own choice
  RoundOptions rounds = {};
};

/// A line for people now and then, from the root rank only.
using Progress = std::function<void(const std::string& line)>;

/// What bounds and engines work with as the options have it: the LP solver, columns over all ranks, parts.
/// Must outlive neither the communicator nor the checkpoints. Throws Error for options that do not go
/// together.
Toolbox prepare_toolbox(const SolveOptions& options, const Communicator& communicator,
                        const Progress& progress, const std::atomic<bool>* interrupt = nullptr,
                        Checkpoints* checkpoints = nullptr);

struct SynthesisResult {
  ProvenSchedule proven;     ///< replayed; bound derived from its certificate
  bool is_replayed = false;  ///< the search has done so already, on the rank that found the schedule
  double gap = 0;            ///< finish / bound - 1
  std::string engine = {};   ///< that won, with its policy and seed: "list/rarest/3"
  std::uint64_t seed = 0;
  std::map<std::string, double> metrics = {};       ///< see EngineResult
  std::map<std::string, double> wall_parts_s = {};  ///< "bounds", "search", "improvement", "replay"
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
    std::size_t most_sends_on_a_link = 0;  ///< what an executor's steps go by
  };
  std::map<int, Trade> by_chunks = {};   ///< the best of each number of chunks that was tried
  std::vector<RoundRecord> rounds = {};  ///< engine rounds: what each did, without its sends and state
};

/// Where a run keeps what it has finished, and what it finds of an earlier start. By default nowhere.
struct RunStore {
  std::vector<RoundRecord> finished = {};  ///< rounds
  FinishRound finish_round = [](const RoundRecord&) {};
  std::shared_ptr<Checkpoints> checkpoints = std::make_shared<Checkpoints>();  ///< of the other long phases
};

/// Throws what synthesize() would throw, after its bounds, for options that do not fit the problem.
void check_options(const Topology& topology, const Demand& demand, const SolveOptions& options);

/// Collective. Bounds, then a portfolio of engines, chunk counts, policies and seeds dealt over the ranks (or
/// the one engine asked for), then replay and certificate. The same schedule on any number of ranks unless a
/// time limit is set. `demand` has one chunk a contribution; options.chunks splits it. Throws
/// Error(unavailable) when an engine does not support the problem or a limit came before any schedule.
SynthesisResult synthesize(std::shared_ptr<const Topology> topology, const Demand& demand,
                           const SolveOptions& options, const Communicator& communicator,
                           const Progress& progress, const std::atomic<bool>* interrupt = nullptr,
                           const RunStore& store = {});

}  // namespace rondo
