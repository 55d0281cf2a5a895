#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rondo/catalogue/entry.hpp"
#include "rondo/catalogue/folder.hpp"
#include "rondo/pipeline/options.hpp"
#include "rondo/pipeline/run_context.hpp"

namespace rondo::catalogue {

struct BuildOptions {
  /// A schedule that ends so near to the bound is good enough; a size whose neighbour's schedule takes at
  /// most so much longer than the best known needs none of its own, unless the gap is larger in between. A
  /// fraction.
  double tolerance = 0.01;
  /// Of each cell that is solved and not good enough, tried over the links of at most so many sketches, made
  /// from the topology; those whose lower bound is not before the best end so far are left out.
  int sketches = 0;
  /// Of each cell that is solved: seed, improve_work, concurrency.
  SolveOptions solve = {};

  /// As cells record it.
  std::string text() const;
};

struct BuildTask {
  std::shared_ptr<const Topology> topology;
  std::vector<Series> series;  ///< all of that topology
  std::vector<double> sizes;   ///< ascending, each once
  BuildOptions options = {};
  bool anew = false;  ///< cells that are there count for nothing
  /// To begin with, of each series, the cells of an older one by size: kept where they do as well here, else
  /// adapted; ReduceScatter also from AllGather's new cell backwards, AllReduce from both in halves. Empty,
  /// or one table a series.
  std::vector<Table> older = {};
};

struct BuildSummary {
  std::map<std::string, int> made;        ///< cells by to_string(Way)
  int found = 0;                          ///< cells that were there
  std::vector<std::string> damaged = {};  ///< cells that were made again, and why
};

/// Collective. Makes the cells of all series, dealt over the ranks, each on one; then the bins. First the
/// largest size and the smallest, then the middle of what is between two sizes that are made, and so on. A
/// cell takes over a neighbour's schedule, timed anew, where that is good enough; else it is solved, and the
/// best of these counts. Every rank writes the cells it makes; what is in the folder already is not made
/// again, so that a build that was killed goes on, with the result of an undisturbed one, on any number of
/// ranks. Throws Error(bad_data) where the folder has a cell that was made with other options, Error(stopped)
/// once the context is interrupted.
BuildSummary build(const Folder& folder, const BuildTask& task, const RunContext& context);

/// Collective. The best schedule of each cell among its own and its neighbours', and the bins of each series
/// that has none yet.
void find_bins(const Folder& folder, const std::vector<Series>& series, const RunContext& context);

}  // namespace rondo::catalogue
