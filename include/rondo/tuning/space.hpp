#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/io/json_files.hpp"

/// What a tuner chooses from (FORMATS.md, "A space to tune in").
namespace rondo::tuning {

struct Parameter {
  std::string name;                 ///< letters, digits and '_'
  std::vector<std::string> values;  ///< each once; numbers ascend
  bool is_ordered = false;          ///< numbers: values near each other do alike
};

/// A point is allowed only where the value of `larger` is at least `factor` times that of `smaller`.
struct AtLeast {
  std::size_t larger = 0;  ///< index of an ordered parameter
  std::size_t smaller = 0;
  double factor = 1;
};

/// One value of each parameter, by its index.
using Choice = std::vector<std::uint16_t>;

/// All allowed points, numbered 0 .. size() - 1.
class Space {
 public:
  static constexpr std::size_t kMostPoints = 1'000'000;

  /// Throws Error(bad_data) where a parameter has no values or a name or value twice, Error(unavailable)
  /// beyond kMostPoints, and where no point is allowed.
  Space(std::vector<Parameter> parameters, std::vector<AtLeast> conditions);

  std::size_t size() const { return points_.size(); }
  std::size_t num_of_grid() const { return grid_; }  ///< with the points that are not allowed
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Position of a parameter. Throws Error(bad_data) where there is none of that name.
  std::size_t parameter(const std::string& name) const;
  const std::string& value(std::size_t point, std::size_t parameter) const;
  double number(std::size_t point, std::size_t parameter) const;
  Choice choice(std::size_t point) const;
  /// The allowed point nearest to a choice, by the number of steps; that of the lowest number among equals.
  std::size_t nearest(const Choice& choice) const;
  /// "protocol=LL,channels=4".
  std::string text(std::size_t point) const;
  /// The way back. Throws Error(usage), naming what is wrong.
  std::size_t point(const std::string& text) const;

  Json to_json() const;

 private:
  bool is_allowed(const Choice& choice) const;
  Choice choice_of_grid(std::size_t index) const;

  std::vector<Parameter> parameters_;
  std::vector<AtLeast> conditions_;
  std::size_t grid_ = 1;
  std::vector<std::uint32_t> points_;  ///< ascending, as numbers of the grid
};

/// Format `rondo-tuning-space`. Throws Error(bad_data) with the place.
Space space_from_json(const Json& json);
/// TuCCL, table IV: protocol x channels x threads x buffer, 3600 points; threads at least 32 a channel
/// (section III-C).
Space tuccl_space();

}  // namespace rondo::tuning
