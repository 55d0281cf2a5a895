#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Collectives of a group of GPUs, and of parts of unequal size.
namespace rondo::benchmarks::combining {

struct ShapeCase {
  std::string name;  ///< "alltoall of a mixture of experts"
  std::string fabric;
  std::vector<std::string> arguments;  ///< without --topology
};

/// Writes the files of counts that the cases need into `folder`.
std::vector<ShapeCase> shape_cases(const std::filesystem::path& folder);

}  // namespace rondo::benchmarks::combining
