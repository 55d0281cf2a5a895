#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fabric_builder.hpp"
#include "rondo/core/generators.hpp"

namespace rondo {

using ParameterList = std::vector<GeneratorParameter>;
using ParameterValues = std::map<std::string, std::string>;

/// The values of one family's parameters: given or default, checked as they are read. Every function throws
/// Error(usage), naming the parameter, its value and what would be right, and Error(unavailable) beyond a
/// cap.
class Parameters {
 public:
  /// Throws for a given name that is not in the list.
  Parameters(std::string_view family, const ParameterList& known, const ParameterValues& given);

  const std::string& text(const std::string& name) const { return values_.at(name); }
  /// A whole number, `least` or more.
  std::size_t count(const std::string& name, std::size_t least) const;
  bool flag(const std::string& name) const;
  /// One of `choices`.
  const std::string& choice(const std::string& name, const std::vector<std::string>& choices) const;
  /// "4x4x4", each 2 or more.
  std::vector<std::size_t> dims(const std::string& name) const;
  /// "50", or "50,75" with one value a dimension; always `num_dims` values.
  std::vector<double> bandwidth_per_dim(const std::string& name, std::size_t num_dims) const;
  /// Bandwidth and latency of one kind of link.
  LinkFigures link(const std::string& bandwidth_name, const std::string& latency_name) const;
  double latency(const std::string& name) const;

  [[noreturn]] void refuse(const std::string& name, const std::string& remedy) const;

 private:
  std::string family_;
  ParameterValues values_;
};

}  // namespace rondo
