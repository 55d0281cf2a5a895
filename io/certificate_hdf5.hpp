#pragma once

#include "hdf5_reader.hpp"
#include "hdf5_writer.hpp"
#include "rondo/core/certificate.hpp"

namespace rondo {

/// As FORMATS.md 3 has it. Ids and times are not looked at: that is for those who check the certificate.
void write_certificate(const Hdf5GroupWriter& group, const Certificate& certificate);
/// Throws Error(bad_data) that gives the place, what is there and what would be right.
Certificate read_certificate(const Hdf5GroupReader& group);

}  // namespace rondo
