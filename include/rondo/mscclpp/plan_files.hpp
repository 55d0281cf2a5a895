#pragma once

#include "rondo/io/json_files.hpp"
#include "rondo/mscclpp/plan.hpp"

namespace rondo::mscclpp {

/// Whether a JSON document is an execution plan of MSCCL++ rather than a file of Rondo's.
bool is_plan(const Json& json);

/// Reads an execution plan of any producer (FORMATS.md 8). Keys that the executor does not read are passed
/// over. Throws Error(bad_data) with the place in the document, value and remedy; Error(unavailable) for what
/// combines otherwise than by adding. Whether the plan is any good is for check.
Plan plan_from_json(const Json& json);

/// The plan as the executor reads it.
Json plan_to_json(const Plan& plan);

}  // namespace rondo::mscclpp
