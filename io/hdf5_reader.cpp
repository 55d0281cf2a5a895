#include "hdf5_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMaxAttributeBytes = 65'536;  // HDF5's own limit

herr_t collect_link(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

herr_t collect_attribute(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

const char* class_name(H5T_class_t type_class) {
  switch (type_class) {
    case H5T_INTEGER:
      return "integer";
    case H5T_FLOAT:
      return "floating point";
    case H5T_STRING:
      return "text of fixed length";
    default:
      return "another type";
  }
}

/// Fixed-length text ends at the first NUL or fills its size.
std::string unpadded(const char* text, std::size_t size) {
  return {text, ::strnlen(text, size)};
}

}  // namespace

void Hdf5GroupReader::check_members(std::initializer_list<std::string_view> known) const {
  const Hdf5Silence silence;
  std::vector<std::string> names;
  hsize_t position = 0;
  if (H5Literate(group_.id(), H5_INDEX_NAME, H5_ITER_INC, &position, collect_link, &names) < 0 ||
      H5Aiterate2(group_.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_attribute, &names) < 0) {
    refuse("", "HDF5 cannot list its members");
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse(name.c_str(), fmt::format("unknown name; known names are {}", fmt::join(known, ", ")));
  }
}

void Hdf5GroupReader::check_format(const std::string& name) const {
  if (const std::string format = text("format"); format != name) {
    refuse("format", fmt::format("'{}'; it has to be '{}'", format, name));
  }
  if (const std::int64_t version = integer("version"); version != 1) {
    refuse("version", fmt::format("{}; it has to be 1, the only version there is", version));
  }
}

bool Hdf5GroupReader::has_attribute(const char* name) const {
  const Hdf5Silence silence;
  return H5Aexists(group_.id(), name) > 0;
}

bool Hdf5GroupReader::has_link(const char* name) const {
  const Hdf5Silence silence;
  return H5Lexists(group_.id(), name, H5P_DEFAULT) > 0;
}

Hdf5GroupReader Hdf5GroupReader::open_group(const char* name) const {
  const Hdf5Silence silence;
  Hdf5Handle group(H5Gopen2(group_.id(), name, H5P_DEFAULT), H5Gclose);
  if (!group.valid()) refuse(name, "HDF5 finds no such group");
  return {std::move(group), place_ + name + "/", file_bytes_};
}

double Hdf5GroupReader::number(const char* name) const {
  const Hdf5Silence silence;
  const Hdf5Handle attribute = open_attribute(name, H5T_FLOAT);
  double value = 0;
  if (H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value) < 0) refuse(name, "HDF5 cannot read it");
  return value;
}

std::int64_t Hdf5GroupReader::integer(const char* name) const {
  const Hdf5Silence silence;
  const Hdf5Handle attribute = open_attribute(name, H5T_INTEGER);
  std::int64_t value = 0;
  if (H5Aread(attribute.id(), H5T_NATIVE_INT64, &value) < 0) refuse(name, "HDF5 cannot read it");
  return value;
}

std::string Hdf5GroupReader::text(const char* name) const {
  const Hdf5Silence silence;
  const Hdf5Handle attribute = open_attribute(name, H5T_STRING);
  const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const std::size_t size = H5Tget_size(type.id());
  if (size > kMaxAttributeBytes) refuse(name, fmt::format("text of {} bytes is too long", size));
  std::string padded(size, '\0');
  if (H5Aread(attribute.id(), type.id(), padded.data()) < 0) refuse(name, "HDF5 cannot read it");
  return unpadded(padded.data(), size);
}

std::vector<double> Hdf5GroupReader::numbers(const char* name) const {
  const Hdf5Silence silence;
  const Column column = open_column(name, H5T_FLOAT);
  std::vector<double> values(column.count);
  read(name, column, H5T_NATIVE_DOUBLE, values.data());
  return values;
}

std::vector<std::int64_t> Hdf5GroupReader::integers(const char* name) const {
  const Hdf5Silence silence;
  const Column column = open_column(name, H5T_INTEGER);
  std::vector<std::int64_t> values(column.count);
  read(name, column, H5T_NATIVE_INT64, values.data());
  return values;
}

std::vector<std::string> Hdf5GroupReader::texts(const char* name) const {
  const Hdf5Silence silence;
  const Column column = open_column(name, H5T_STRING);
  const std::size_t size = H5Tget_size(column.type.id());
  std::vector<char> padded(column.count * size);
  read(name, column, column.type.id(), padded.data());
  std::vector<std::string> values;
  values.reserve(column.count);
  for (std::size_t i = 0; i < column.count; ++i) values.push_back(unpadded(padded.data() + i * size, size));
  return values;
}

void Hdf5GroupReader::refuse(const char* name, const std::string& message) const {
  throw Error(ExitCode::bad_data, fmt::format("{}{}: {}", place_, name, message));
}

Hdf5Handle Hdf5GroupReader::open_attribute(const char* name, H5T_class_t type_class) const {
  Hdf5Handle attribute(H5Aopen(group_.id(), name, H5P_DEFAULT), H5Aclose);
  if (!attribute.valid()) refuse(name, "HDF5 finds no such attribute");
  const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
  if (H5Tget_class(type.id()) != type_class || H5Tis_variable_str(type.id()) > 0 ||
      H5Sget_simple_extent_type(space.id()) != H5S_SCALAR) {
    refuse(name, fmt::format("it has to be one value of type {}", class_name(type_class)));
  }
  return attribute;
}

Hdf5GroupReader::Column Hdf5GroupReader::open_column(const char* name, H5T_class_t type_class) const {
  Hdf5Handle dataset(H5Dopen2(group_.id(), name, H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) refuse(name, "HDF5 finds no such dataset");
  Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  if (H5Tget_class(type.id()) != type_class || H5Tis_variable_str(type.id()) > 0 ||
      H5Sget_simple_extent_ndims(space.id()) != 1) {
    refuse(name, fmt::format("it has to be a list of type {}", class_name(type_class)));
  }
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  const std::size_t size = H5Tget_size(type.id());
  if (count < 0 || size == 0 || static_cast<std::uint64_t>(count) > file_bytes_ / size) {
    refuse(name, fmt::format("{} values of {} bytes do not fit into the file's {} bytes", count, size,
                             file_bytes_));
  }
  return {std::move(dataset), std::move(type), static_cast<std::size_t>(count)};
}

void Hdf5GroupReader::read(const char* name, const Column& column, hid_t memory_type, void* values) const {
  if (column.count == 0) return;
  if (H5Dread(column.dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
    refuse(name, "HDF5 cannot read it");
  }
}

Hdf5InputFile::Hdf5InputFile(const std::filesystem::path& path)
    : shown_path_(fmt::format("'{}': ", path.string())),
      file_bytes_(std::filesystem::file_size(path)),
      file_([&] {
        const Hdf5Silence silence;
        return Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
      }()) {
  if (!file_.valid())
    throw Error(ExitCode::bad_data, shown_path_ + "HDF5 cannot open it; is it an HDF5 file?");
}

Hdf5GroupReader Hdf5InputFile::root() const {
  const Hdf5Silence silence;
  Hdf5Handle group(H5Gopen2(file_.id(), "/", H5P_DEFAULT), H5Gclose);
  if (!group.valid()) throw Error(ExitCode::bad_data, shown_path_ + "HDF5 finds no root group");
  return {std::move(group), shown_path_ + "/", file_bytes_};
}

}  // namespace rondo
