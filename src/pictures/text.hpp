#pragma once

#include <string>
#include <string_view>

#include "rondo/core/topology.hpp"

namespace rondo::pictures {

/// Valid UTF-8 without control characters, for any input.
std::string printable(std::string_view text);

/// `printable` for element content and attribute values of XML and HTML.
std::string markup(std::string_view text);

/// The node's name, or "gpu 3", "switch 18" where it has none.
std::string node_label(const Topology& topology, NodeId node);
/// "c0g0 → c0g1".
std::string link_label(const Topology& topology, LinkId link);

/// "40032", "12.345": at most seven significant digits, for reading.
std::string short_number(double value);
/// "97.3 %".
std::string percent(double share);
/// A coordinate with at most two decimals.
std::string coordinate(double value);

/// "3 links", "1 link".
std::string count_of(std::size_t count, std::string_view noun);

}  // namespace rondo::pictures
