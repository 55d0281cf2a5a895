#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5_handle.hpp"

/// Reading what hdf5_writer.hpp writes. Every type and extent is checked, against the length of the file as
/// well, before anything of that size is allocated. Failures are Error(bad_data) with the place in the file.
namespace rondo {

class Hdf5GroupReader {
 public:
  Hdf5GroupReader(Hdf5Handle group, std::string place, std::uint64_t file_bytes)
      : group_(std::move(group)), place_(std::move(place)), file_bytes_(file_bytes) {}

  /// Refuses attributes, datasets and groups of other names.
  void check_members(std::initializer_list<std::string_view> known) const;
  /// Requires "format" to be `name` and "version" to be 1.
  void check_format(const std::string& name) const;
  bool has_attribute(const char* name) const;
  bool has_link(const char* name) const;  ///< a group or dataset
  Hdf5GroupReader open_group(const char* name) const;

  double number(const char* name) const;
  std::int64_t integer(const char* name) const;
  std::string text(const char* name) const;
  std::vector<double> numbers(const char* name) const;
  std::vector<std::int64_t> integers(const char* name) const;
  std::vector<std::string> texts(const char* name) const;

  /// Throws Error(bad_data) "PLACE NAME: MESSAGE".
  [[noreturn]] void refuse(const char* name, const std::string& message) const;

 private:
  Hdf5Handle open_attribute(const char* name, H5T_class_t type_class) const;
  struct Column {
    Hdf5Handle dataset;
    Hdf5Handle type;
    std::size_t count;
  };
  Column open_column(const char* name, H5T_class_t type_class) const;
  void read(const char* name, const Column& column, hid_t memory_type, void* values) const;

  Hdf5Handle group_;
  std::string place_;  // "'file.h5': /sends/"
  std::uint64_t file_bytes_;
};

class Hdf5InputFile {
 public:
  /// Verify the user block first: libhdf5 does not survive damaged files.
  explicit Hdf5InputFile(const std::filesystem::path& path);
  Hdf5GroupReader root() const;

 private:
  std::string shown_path_;
  std::uint64_t file_bytes_;
  Hdf5Handle file_;
};

}  // namespace rondo
