#include "versions.hpp"

#include <H5public.h>
#include <coin/Cbc_C_Interface.h>
#include <coin/Clp_C_Interface.h>
#include <fmt/format.h>
#include <mpi.h>

#include "rondo/core/version.hpp"

namespace rondo::cli {
namespace {

/// "4.1.4" of "Open MPI v4.1.4, package: ...".
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text, static_cast<std::size_t>(length));
  version.erase(std::min(version.size(), version.find(',')));
  const std::string prefix = "Open MPI v";
  return version.starts_with(prefix) ? version.substr(prefix.size()) : version;
}

std::string hdf5_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace

std::map<std::string, std::string> library_versions() {
  return {{"rondo", version()},
          {"openmpi", mpi_version()},
          {"hdf5", hdf5_version()},
          {"clp", Clp_Version()},
          {"cbc", Cbc_getVersion()}};
}

std::string describe_versions() {
  std::string text = fmt::format("{}\n", producer());
  for (const auto& [name, version] : library_versions()) {
    if (name != "rondo") text += fmt::format("  {} {}\n", name, version);
  }
  return text;
}

}  // namespace rondo::cli
