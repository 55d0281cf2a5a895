#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/core/topology.hpp"

namespace rondo {

/// What the value of a parameter may be: a number in a range, a word, or several numbers in a row.
struct ParameterRange {
  double least = 0;
  bool may_be_least = true;  ///< else it has to be above
  double most = std::numeric_limits<double>::infinity();
  bool is_whole = false;
  bool is_number = true;
  std::vector<std::string> words = {};  ///< accepted beside numbers
  char separator = 0;                   ///< between several numbers; 0: one number

  bool accepts(std::string_view text) const;
  /// "a whole number, 2 or more".
  std::string describe() const;
};

/// One parameter of a generator, with all that `rondo topology list` and the checks need.
struct GeneratorParameter {
  std::string name;           ///< e.g. "bandwidth_GBps"
  std::string help;           ///< meaning and unit
  std::string default_value;  ///< text, as on the command line; lists ("4x4") for dimensions
  ParameterRange range;
};

class Parameters;

/// A family of topologies.
struct TopologyGenerator {
  std::string name;  ///< "ring", "torus", ...
  std::string help;
  std::vector<GeneratorParameter> parameters;
  Topology (*build)(const Parameters& parameters);

  /// Values not given take their defaults. Throws Error(usage) for an unknown parameter or a value out of
  /// range, Error(unavailable) for a topology beyond the caps of topology.hpp.
  Topology generate(const std::map<std::string, std::string>& values) const;
};

/// All families, in the order that `rondo topology list` shows.
const std::vector<TopologyGenerator>& topology_generators();

/// "torus" with {"dims": "8x8", "bandwidth_GBps": "50"}. Throws Error(usage) for an unknown family (the
/// message lists the known ones).
Topology generate_topology(const std::string& family, const std::map<std::string, std::string>& values);
/// The same from one text, FAMILY:NAME=VALUE,NAME=VALUE: "torus:dims=8x8,bandwidth_GBps=50,75".
Topology generate_topology(const std::string& spec);

/// Multiplies the bandwidth of a random `fraction` of the links (rounded to the nearest count, at least one
/// when the fraction is positive) by `factor`. Throws Error(usage) unless 0 <= fraction <= 1 and 0 < factor
/// <= 1.
Topology degrade(const Topology& topology, double fraction, double factor, std::uint64_t seed);
/// The same, every link by a factor of its own, evenly from [least, most].
Topology degrade(const Topology& topology, double fraction, double least, double most, std::uint64_t seed);

/// Without the links between two nodes, in both directions: a cable or a network card that is gone. Links
/// behind them move up in number. Throws Error(usage) where no link joins the two.
Topology without_links_between(const Topology& topology, NodeId a, NodeId b);

}  // namespace rondo
