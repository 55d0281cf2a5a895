#pragma once

#include "hdf5_reader.hpp"
#include "hdf5_writer.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// A topology as an HDF5 group: FORMATS.md 1 column by column. Absent chassis is -1.
void write_topology(const Hdf5GroupWriter& group, const Topology& topology);
Topology read_topology(const Hdf5GroupReader& group);

}  // namespace rondo
