#include "hdf5_writer.hpp"

#include <algorithm>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

void check_built(bool succeeded, const std::string& place) {
  if (!succeeded) throw Error(ExitCode::internal, "HDF5 cannot build '" + place + "' in memory");
}

Hdf5Handle text_type(std::size_t size) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), std::max<std::size_t>(1, size));
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  return type;
}

/// Arrays of so many values are compressed, in pieces of so many at most.
constexpr std::size_t kCompressedFrom = std::size_t{1} << 13;
constexpr unsigned kDeflateLevel = 1;

/// Without times, so that the same content gives the same bytes.
Hdf5Handle dataset_properties() {
  Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.id(), false);
  return properties;
}

void put_attribute_of(hid_t object, const std::string& name, hid_t file_type, hid_t memory_type,
                      const void* value, const std::string& place) {
  const Hdf5Silence silence;
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate2(object, name.c_str(), file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check_built(attribute.valid() && H5Awrite(attribute.id(), memory_type, value) >= 0, place);
}

/// Of a dataset of `count` values, in pieces and compressed where that is worth it.
Hdf5Handle properties_of(std::size_t count, const std::string& place) {
  Hdf5Handle properties = dataset_properties();
  if (count < kCompressedFrom) return properties;
  const hsize_t piece = std::min(kHdf5Piece, count);
  H5Pset_chunk(properties.id(), 1, &piece);
  H5Pset_shuffle(properties.id());
  check_built(H5Pset_deflate(properties.id(), kDeflateLevel) >= 0, place);
  return properties;
}

Hdf5Handle create_file_in_memory(std::size_t user_block_bytes) {
  const Hdf5Silence silence;
  const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation.id(), user_block_bytes);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  constexpr std::size_t kGrowthBytes = std::size_t{1} << 20;
  H5Pset_fapl_core(access.id(), kGrowthBytes, false);
  Hdf5Handle file(H5Fcreate("schedule.h5", H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose);
  check_built(file.valid(), "/");
  return file;
}

}  // namespace

Hdf5GroupWriter Hdf5GroupWriter::create_group(const std::string& name) const {
  const Hdf5Silence silence;
  Hdf5Handle group(H5Gcreate2(group_.id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  check_built(group.valid(), place_ + name);
  return {std::move(group), place_ + name + "/"};
}

void Hdf5GroupWriter::put(const std::string& name, double value) const {
  put_attribute(name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

void Hdf5GroupWriter::put(const std::string& name, std::int64_t value) const {
  put_attribute(name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void Hdf5GroupWriter::put(const std::string& name, const std::string& value) const {
  const Hdf5Handle type = text_type(value.size());
  put_attribute(name, type.id(), type.id(), value.c_str());
}

void Hdf5GroupWriter::put_array(const std::string& name, const std::vector<double>& values,
                                const std::string& units) const {
  put_dataset(name, values.size(), H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values.data(), units);
}

void Hdf5GroupWriter::put_array(const std::string& name, const std::vector<std::int64_t>& values,
                                hid_t file_type) const {
  put_dataset(name, values.size(), file_type, H5T_NATIVE_INT64, values.data(), "");
}

void Hdf5GroupWriter::put_array(const std::string& name, const std::vector<std::string>& values) const {
  std::size_t longest = 1;
  for (const std::string& value : values) longest = std::max(longest, value.size());
  std::string padded(longest * values.size(), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) values[i].copy(padded.data() + i * longest, longest);
  const Hdf5Handle type = text_type(longest);
  put_dataset(name, values.size(), type.id(), type.id(), padded.data(), "");
}

void Hdf5GroupWriter::put_attribute(const std::string& name, hid_t file_type, hid_t memory_type,
                                    const void* value) const {
  put_attribute_of(group_.id(), name, file_type, memory_type, value, place_ + name);
}

Hdf5Handle Hdf5GroupWriter::create_dataset(const std::string& name, std::size_t count, hid_t file_type,
                                           const Hdf5Handle& properties) const {
  const hsize_t extent = count;
  const Hdf5Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  Hdf5Handle dataset(
      H5Dcreate2(group_.id(), name.c_str(), file_type, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT),
      H5Dclose);
  check_built(dataset.valid(), place_ + name);
  return dataset;
}

void Hdf5GroupWriter::put_dataset(const std::string& name, std::size_t count, hid_t file_type,
                                  hid_t memory_type, const void* values, const std::string& units) const {
  const Hdf5Silence silence;
  Hdf5Handle dataset = create_dataset(name, count, file_type, properties_of(count, place_ + name));
  check_built(count == 0 || H5Dwrite(dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
              place_ + name);
  if (!units.empty()) Hdf5GroupWriter(std::move(dataset), place_ + name + "/").put("units", units);
}

Hdf5ColumnAppender Hdf5GroupWriter::create_column(const std::string& name, std::size_t count, hid_t file_type,
                                                  hid_t memory_type, const std::string& units) const {
  const Hdf5Silence silence;
  const std::string place = place_ + name;
  Hdf5Handle dataset = create_dataset(name, count, file_type, properties_of(count, place));
  if (!units.empty()) {
    const Hdf5Handle type = text_type(units.size());
    put_attribute_of(dataset.id(), "units", type.id(), type.id(), units.c_str(), place + "/units");
  }
  return {std::move(dataset), memory_type, place};
}

void Hdf5ColumnAppender::append(const void* values, std::size_t count) {
  if (count == 0) return;
  const Hdf5Silence silence;
  const hsize_t first = written_;
  const hsize_t extent = count;
  const Hdf5Handle in_file(H5Dget_space(dataset_.id()), H5Sclose);
  const Hdf5Handle in_memory(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  const bool is_selected =
      H5Sselect_hyperslab(in_file.id(), H5S_SELECT_SET, &first, nullptr, &extent, nullptr) >= 0;
  check_built(is_selected && H5Dwrite(dataset_.id(), memory_type_, in_memory.id(), in_file.id(), H5P_DEFAULT,
                                      values) >= 0,
              place_);
  written_ += count;
}

std::uint64_t Hdf5GroupWriter::allocate_array(const std::string& name, std::size_t count, hid_t file_type,
                                              const std::string& units) const {
  const Hdf5Silence silence;
  const Hdf5Handle properties = dataset_properties();
  H5Pset_alloc_time(properties.id(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(properties.id(), H5D_FILL_TIME_NEVER);
  Hdf5Handle dataset = create_dataset(name, count, file_type, properties);
  const haddr_t offset = count == 0 ? 0 : H5Dget_offset(dataset.id());
  check_built(offset != HADDR_UNDEF, place_ + name);
  if (!units.empty()) Hdf5GroupWriter(std::move(dataset), place_ + name + "/").put("units", units);
  return offset;
}

Hdf5Image::Hdf5Image(std::size_t user_block_bytes)
    : user_block_bytes_(user_block_bytes), file_(create_file_in_memory(user_block_bytes)) {}

Hdf5GroupWriter Hdf5Image::root() const {
  Hdf5Handle group(H5Gopen2(file_.id(), "/", H5P_DEFAULT), H5Gclose);
  check_built(group.valid(), "/");
  return {std::move(group), "/"};
}

std::vector<char> Hdf5Image::bytes() const {
  const Hdf5Silence silence;
  check_built(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL) >= 0, "/");
  const ssize_t size = H5Fget_file_image(file_.id(), nullptr, 0);  // without the user block
  check_built(size > 0, "/");
  std::vector<char> bytes(user_block_bytes_ + static_cast<std::size_t>(size));
  char* image = bytes.data() + user_block_bytes_;
  check_built(H5Fget_file_image(file_.id(), image, static_cast<std::size_t>(size)) == size, "/");
  return bytes;
}

}  // namespace rondo
