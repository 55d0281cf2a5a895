#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "rondo/parallel/communicator.hpp"

/// All that an HDF5 file holds, as far as Rondo's formats go: groups, attributes of groups, and datasets of
/// one dimension.
namespace rondo {

struct Hdf5Value {
  enum class Kind : char { group, real, integer, text, other };
  Kind kind = Kind::other;
  bool is_list = false;  ///< of a dataset; else one value, of an attribute
  std::vector<double> reals = {};
  std::vector<std::int64_t> integers = {};
  std::vector<std::string> texts = {};
};

/// By path: "sends/" a group, "sends/chunk" a dataset, "sends/@count" an attribute of the group.
using Hdf5Content = std::map<std::string, Hdf5Value>;

/// What the values of a file of this length can take at most: as much as the format's compression can save.
std::uint64_t max_content_bytes(std::uint64_t file_bytes);

/// Reads it all with libhdf5, which may crash on what it is given: to be called in a process of its own.
/// Follows no link out of the file, loads no plugin, and refuses extents that the file's length does not
/// allow. Throws Error(bad_data) that begins with `shown`.
Hdf5Content load_hdf5(const std::filesystem::path& path, const std::string& shown);

Bytes pack_content(const Hdf5Content& content);
Hdf5Content unpack_content(const Bytes& bytes);

}  // namespace rondo
