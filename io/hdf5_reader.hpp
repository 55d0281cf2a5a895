#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5_content.hpp"

/// Reading what hdf5_writer.hpp writes. Failures are Error(bad_data) with the place in the file.
namespace rondo {

class Hdf5GroupReader {
 public:
  /// `prefix` is the group's path in `content`.
  Hdf5GroupReader(std::shared_ptr<const Hdf5Content> content, std::string shown, std::string prefix)
      : content_(std::move(content)), shown_(std::move(shown)), prefix_(std::move(prefix)) {}

  /// Refuses attributes, datasets and groups of other names.
  void check_members(std::initializer_list<std::string_view> known) const;
  /// Requires "format" to be `name` and "version" to be one that there is, and returns the version.
  int check_format(const std::string& name) const;
  /// Refuses `newest` in a file of version 1: a reader that knows no more would misread it.
  void check_version(int version, std::initializer_list<const char*> newest) const;
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
  const Hdf5Value* find(const std::string& place) const;
  const Hdf5Value& attribute(const char* name, Hdf5Value::Kind kind) const;
  const Hdf5Value& dataset(const char* name, Hdf5Value::Kind kind) const;

  std::shared_ptr<const Hdf5Content> content_;
  std::string shown_;   // "'file.h5'"
  std::string prefix_;  // "sends/"
};

class Hdf5InputFile {
 public:
  /// Reads the file in a process of its own, because libhdf5 does not survive hostile files. Verify the user
  /// block first: it tells damage from malice.
  explicit Hdf5InputFile(const std::filesystem::path& path);
  Hdf5GroupReader root() const;

 private:
  std::string shown_;
  std::shared_ptr<const Hdf5Content> content_;
};

}  // namespace rondo
