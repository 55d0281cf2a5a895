#pragma once

#include <string>

#include "rondo/pipeline/options.hpp"

/// Why an option changes nothing beside the others, though the engine heeds it; empty where it does.
namespace rondo {

std::string why_round_idle(const SolveOptions& options, bool is_unicast);
std::string why_round_work_idle(const SolveOptions& options, bool is_unicast);
std::string why_min_chunk_bytes_idle(const SolveOptions& options, bool is_unicast);
std::string why_lp_solver_idle(const SolveOptions& options, bool is_unicast);
std::string why_lp_tolerance_idle(const SolveOptions& options, bool is_unicast);
std::string why_symmetry_idle(const SolveOptions& options, bool is_unicast);
std::string why_gap_idle(const SolveOptions& options, bool is_unicast);
std::string why_search_idle(const SolveOptions& options, bool is_unicast);
std::string why_improve_work_idle(const SolveOptions& options, bool is_unicast);
std::string why_streams_idle(const SolveOptions& options, bool is_unicast);
std::string why_join_idle(const SolveOptions& options, bool is_unicast);
std::string why_spacing_idle(const SolveOptions& options, bool is_unicast);
std::string why_decompose_idle(const SolveOptions& options, bool is_unicast);
std::string why_parts_idle(const SolveOptions& options, bool is_unicast);

}  // namespace rondo
