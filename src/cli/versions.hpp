#pragma once

#include <map>
#include <string>

namespace rondo::cli {

/// Rondo and the libraries that its results depend on: "rondo", "openmpi", "hdf5", "clp", "cbc".
std::map<std::string, std::string> library_versions();

/// The same, a line each.
std::string describe_versions();

}  // namespace rondo::cli
