#pragma once

#include "rondo/core/certificate.hpp"
#include "rondo/io/json_object.hpp"

namespace rondo {

/// As FORMATS.md 3 has it. Ids and times are not looked at: that is for those who check the certificate.
Json certificate_to_json(const Certificate& certificate);
/// Throws Error(bad_data) that gives the place, what is there and what would be right.
Certificate read_certificate(const JsonObject& object);

}  // namespace rondo
