#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rondo/engines/engine.hpp"

namespace rondo {

/// What an engine works with, which says which options it heeds (rondo/pipeline/options.hpp).
struct EngineTraits {
  bool on_epoch_grid;         ///< time is cut into epochs
  bool counts_epochs;         ///< looks for the least number of epochs that a whole schedule takes
  bool flows_over_time;       ///< time-expanded flows, whose intervals may differ in length
  bool branches;              ///< integer programs by branch and bound
  bool relaxes_on_a_rank;     ///< linear programs of its own on the rank that tries it alone
  bool in_parts;              ///< what it solves can be decomposed
  bool shares_links = false;  ///< bounds the transfers at a time on a link of a GPU
};

/// No epochs, no integer programs, nothing to decompose.
inline constexpr EngineTraits kContinuousTime{.on_epoch_grid = false,
                                              .counts_epochs = false,
                                              .flows_over_time = false,
                                              .branches = false,
                                              .relaxes_on_a_rank = false,
                                              .in_parts = false,
                                              .shares_links = true};

/// Whether one of an engine's policies has something of its own to try.
using PolicyFilter = std::function<bool(const std::string& policy)>;

/// All that others know of an engine. Each engine makes its row in its own file; registry.cpp lists them.
struct EngineInfo {
  std::string name;
  std::string help;
  std::vector<std::string> policies = {};  ///< the first one is the default; may be empty
  /// Whether `auto` gives the engine a try on this instance; the options are those that it is prepared with.
  std::function<bool(const Instance&, const EngineOptions&)> applicable = [](auto&...) { return false; };
  /// Tells which of `policies` have something to try on this instance. `auto` leaves others out.
  std::function<PolicyFilter(const Instance&, const EngineOptions&)> offers = {};
  /// Estimated work of one call, in sends: what dealing over ranks and the search's budget go by.
  std::function<double(const Demand&, const std::string& policy)> work =
      [](const Demand& demand, const std::string&) { return demand.num_deliveries(); };
  /// What a policy begins with. Policies that begin alike, in as many chunks and with the same seed, have
  /// work in common, which a rank that is given them in a row does once. Absent: each with something of its
  /// own.
  std::function<std::string(const std::string& policy)> begins_with = {};
  bool is_known_algorithm = false;  ///< one of NCCL and MPI, to compare with
  /// Of a known algorithm, about the time before which it does not end in however many chunks: what its
  /// busiest link carries, and the latencies of its longest path. Infinity where it does not do the demand.
  std::function<double(const Instance&)> least_us = {};
  /// Does demand of kind all_reduction (AllReduce). Engines that do not are used for its halves.
  bool combines = false;
  bool spreads = true;  ///< does other demand
  /// Has so little work that `auto` tries it on an AllReduce before its halves.
  bool goes_first = false;
  /// So quick that `auto` tries it in all numbers of chunks before other engines; it has no policies.
  bool is_quick = false;
  /// Into how many pieces at least it cuts a contribution: it is tried in multiples of them. Absent: one.
  std::function<int(const Demand&)> pieces = {};
  /// Numbers of chunks, ascending, that suit it better than the powers of two around them: `auto` tries it in
  /// these as well. `is_part`: another part, sums or what spreads them, has as many. Absent: none do.
  std::function<std::vector<int>(const Instance&, bool is_part)> finds_counts = {};
  std::vector<int> found_counts = {};
  bool takes_seeds = true;             ///< other seeds give other schedules
  bool heeds_bandwidth_steps = false;  ///< schedules on links whose bandwidth changes
  bool supports_local_search = false;  ///< also where it is asked for by name, not as one of `auto`
  bool answers = false;                ///< a question, where no schedule of another engine would be an answer
  EngineTraits traits;
  /// Where chunks cost it little: it is tried in as many as make so many sends. Absent: in few.
  std::function<double(const Demand&)> most_sends = {};
  /// Where it pipelines: by the best policy it is tried in twice as many chunks, again and again, while that
  /// gains enough, up to so many deliveries. Absent: it is not.
  std::function<double(const Demand&)> most_pipelined = {};
  Engine prepare = nullptr;
  bool works_in_rounds = false;  ///< by round_steps.hpp, on all ranks at once; then `prepare` is absent
  /// Makes schedules in so many chunks a contribution alone; 0: in any number. The portfolio then
  /// begins with it, and with others in so many chunks.
  int only_chunks = 0;
  /// The part of `work` that the symmetry of an instance leaves; absent: all of it.
  std::function<double(const Instance&, const EngineOptions&)> work_share = {};
};

}  // namespace rondo
