#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "replaying.hpp"
#include "rondo/catalogue/build.hpp"
#include "sketching.hpp"

namespace rondo::catalogue {

/// One cell to be made, on this rank alone.
struct CellTask {
  const Folder& folder;  ///< of the schedules
  std::shared_ptr<const Topology> topology;
  const Series& series;
  double size_bytes = 0;
  const BuildOptions& options;
  const std::vector<NamedFabric>& sketches;  ///< to try
  Replays& replays;
  std::optional<Cell> smaller = std::nullopt;  ///< the nearest that are made
  std::optional<Cell> larger = std::nullopt;
  std::optional<Cell> older = std::nullopt;  ///< of another fabric
  /// Between sizes that were searched: the nearest on both sides whose schedules engines made by themselves,
  /// and so what there is to be tried here.
  bool is_between = false;
  std::optional<Cell> smaller_of_engine = std::nullopt;
  std::optional<Cell> larger_of_engine = std::nullopt;
  /// Of the collectives that this one is made of, backwards or in halves, this size. Without an older cell
  /// of AllReduce alone, and where the main job would find these halves.
  std::optional<Cell> spreading = std::nullopt;
  std::optional<Cell> gathering = std::nullopt;
};

struct MadeCell {
  Cell cell;
  std::map<std::string, double> finish_us = {};  ///< here, of schedules that were replayed; infinity: none
};

/// Keeps the schedule that it makes; the caller keeps the cell. What an interrupt cut short is no cell.
MadeCell make_cell(const CellTask& task, const std::atomic<bool>* interrupt);

}  // namespace rondo::catalogue
