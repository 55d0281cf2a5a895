#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fabric_builder.hpp"
#include "rondo/core/generators.hpp"

namespace rondo {

/// Ranges of parameters.
ParameterRange whole_number(std::size_t least);
ParameterRange whole_number(std::size_t least, std::size_t most);
ParameterRange positive();
ParameterRange not_negative();
ParameterRange one_of(std::vector<std::string> words);
/// Several numbers of `range` with `separator` in between.
ParameterRange several(ParameterRange range, char separator);

/// `message_us`, of every family; `which` links it is of ("a link", "a link inside a chassis").
GeneratorParameter message_cost(const std::string& which);
/// `inter_message_us`, of families whose links between chassis have figures of their own.
GeneratorParameter inter_message_cost(const std::string& which);

/// The values of one family's parameters: given or default, all of them in range.
class Parameters {
 public:
  /// Throws Error(usage) for a name that the family does not have and for a value out of its range, naming
  /// the parameter, its value and what would be right.
  Parameters(const TopologyGenerator& family, const std::map<std::string, std::string>& given);

  const std::string& text(const std::string& name) const { return values_.at(name); }
  bool flag(const std::string& name) const { return text(name) == "true"; }
  /// Throws Error(unavailable) beyond the cap of nodes; so does `dims` for the product.
  std::size_t count(const std::string& name) const;
  /// "4x4x4".
  std::vector<std::size_t> dims(const std::string& name) const;
  double number(const std::string& name) const;
  /// "50", or "50,75" with one value a dimension; always `num_dims` values.
  std::vector<double> bandwidth_per_dim(const std::string& name, std::size_t num_dims) const;
  /// Bandwidth, latency and message cost of one kind of link.
  LinkFigures link(const std::string& bandwidth_name, const std::string& latency_name,
                   const std::string& message_name = "message_us") const;
  /// `multicast` and `reduce`.
  SwitchFigures switches() const { return {.multicast = flag("multicast"), .reduce = flag("reduce")}; }

  /// Throws Error(usage) for a value that does not go with the others.
  [[noreturn]] void refuse(const std::string& name, const std::string& remedy) const;

 private:
  std::string family_;
  std::map<std::string, std::string> values_;
};

}  // namespace rondo
