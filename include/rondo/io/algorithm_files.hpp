#pragma once

#include <string>

#include "rondo/core/algorithm.hpp"
#include "rondo/io/json_files.hpp"

/// Algorithms as other synthesisers write them (FORMATS.md 7): who sends what to whom, step by step.
namespace rondo {

/// Whose spelling of an algorithm.
enum class AlgorithmDialect { msccl, taccl };

/// An algorithm of msccl-tools ("msccl_type"), or of TACCL and SCCL ("sccl_type"). Times in it count for the
/// order alone. Settled. Throws Error(bad_data); Error(unavailable) for what overlaps itself (pipeline) or
/// has triggers.
Algorithm algorithm_from_json(const Json& json, double size_bytes);

/// A schedule of TE-CCL's ("6-Demand_Met", "7-Flows"): GPUs are the nodes that its demands name, in ascending
/// order. Settled. Throws Error(bad_data); Error(unavailable) where it divides chunks.
Algorithm algorithm_from_teccl_json(const Json& json, double size_bytes);

/// Either, by what it begins with.
Algorithm algorithm_from_any_json(const Json& json, double size_bytes);

/// The way back: the schedule's transfers in steps. Throws Error(unavailable) for data that are no equal
/// parts of a named collective of all GPUs.
Json algorithm_to_json(const ProvenSchedule& proven, AlgorithmDialect dialect);

}  // namespace rondo
