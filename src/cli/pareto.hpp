#pragma once

#include <filesystem>
#include <string>

#include "rondo/io/json_files.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo::cli {

/// Collective. What the schedule of `problem` (problem.json) trades: its finish time against the number of
/// chunks, from `report`, and against the size, solving for quarters of it down to kSmallestBytes a GPU. The
/// tables as text; the plots go to the SVG file `plot`.
std::string pareto(const Json& problem, const Json& report, const std::filesystem::path& plot,
                   const Communicator& communicator);

}  // namespace rondo::cli
