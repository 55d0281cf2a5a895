#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/sketch.hpp"
#include "rondo/engines/engine_row.hpp"

/// The engines and formulations by name; also feeds --help. LP solvers: lp_solvers.hpp; decompositions:
/// rondo/decomp/decomposition.hpp.
namespace rondo {

/// One row per engine, in the order in which --help lists them; `auto` is the pipeline's own.
const std::vector<EngineInfo>& engine_registry();
/// Throws Error(usage) listing the known names.
const EngineInfo& find_engine(const std::string& name);
/// The same with a row for "auto", whose traits and policies are what options can choose of the portfolio.
const EngineInfo& find_engine_or_auto(const std::string& name);

/// The formulations, CLP for linear programs, CBC for integer ones.
Toolbox make_toolbox();

/// The row of an engine that heeds all of a sketch, made for this one; nothing where it heeds links alone.
std::optional<EngineInfo> sketched_engine(const std::string& name, std::shared_ptr<const Sketch> sketch);

}  // namespace rondo
