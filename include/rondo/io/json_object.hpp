#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/io/json_files.hpp"

/// Checked access to parsed JSON. Every failure is an Error(bad_data) that gives the place in the document,
/// the value found and what would be right.
namespace rondo {

/// The inclusive range of an integer.
struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t greatest = std::numeric_limits<std::int32_t>::max();
};

/// Place of a member or an element: "topology.links", "links[3]".
std::string member_place(const std::string& place, std::string_view key);
std::string element_place(const std::string& place, std::size_t index);

class JsonObject {
 public:
  /// Throws unless `json`, which has to outlive this, is an object. `place` is "" for the whole document.
  JsonObject(const Json& json, std::string place);

  const std::string& place() const { return place_; }
  std::string place_of(std::string_view key) const { return member_place(place_, key); }

  /// Refuses keys other than `known` and `unsupported` (bad_data), then those of `unsupported` (unavailable).
  void check_keys(std::initializer_list<std::string_view> known,
                  std::initializer_list<std::string_view> unsupported = {}) const;
  /// Requires "format" to be `name` and "version" to be one that there is, and returns the version.
  int check_format(const std::string& name) const;
  /// Refuses `newest` in a file of version 1: a reader that knows no more would misread it.
  void check_version(int version, std::initializer_list<std::string_view> newest) const;

  bool has(const char* key) const { return json_.contains(key); }
  const Json& at(const char* key) const;
  const Json& array(const char* key) const;
  double number(const char* key) const;
  double number_or(const char* key, double fallback) const { return has(key) ? number(key) : fallback; }
  std::int64_t integer(const char* key, IntegerRange range = {}) const;
  bool flag_or(const char* key, bool fallback) const;
  /// Text of at most `max_bytes` without NUL characters, which HDF5 could not keep.
  std::string text(const char* key, std::size_t max_bytes = 256) const;
  std::string text_or(const char* key, const std::string& fallback, std::size_t max_bytes = 256) const;
  std::vector<double> numbers(const char* key) const;
  std::vector<double> numbers_or_null(const char* key) const;  ///< NaN for null
  std::vector<std::int64_t> integers(const char* key, IntegerRange range = {}) const;
  /// `read(element, position)` for every element, an object, of an array.
  template <class Read>
  void for_each_object(const char* key, const Read& read) const {
    const Json& elements = array(key);
    for (std::size_t i = 0; i < elements.size(); ++i)
      read(JsonObject(elements[i], element_place(place_of(key), i)), i);
  }

  /// Throws Error(`code`) "PLACE: MESSAGE".
  [[noreturn]] void refuse(const std::string& message, ExitCode code = ExitCode::bad_data) const;

 private:
  const Json& json_;
  std::string place_;
};

/// All numbers, or all integers in `range`, of an array.
std::vector<double> numbers_of(const Json& array, const std::string& place);
std::vector<std::int64_t> integers_of(const Json& array, const std::string& place, IntegerRange range = {});

}  // namespace rondo
