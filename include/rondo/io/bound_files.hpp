#pragma once

#include "rondo/core/certificate.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo {

/// A lower bound with its certificate, as `lower_bound` of a `rondo-schedule` (FORMATS.md 3). What it proves
/// is for sound_bound_of() to say.
Json lower_bound_to_json(const LowerBound& bound);
/// The way back. Throws Error(bad_data); `place` is where it stands in the document.
LowerBound lower_bound_from_json(const Json& json, const std::string& place);

}  // namespace rondo
