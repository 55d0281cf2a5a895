#pragma once

#include <string>
#include <vector>

#include "rondo/core/topology.hpp"

/// What belongs together in a topology, for pictures: chassis with the switches inside them, or a switch with
/// the GPUs around it.
namespace rondo::pictures {

struct Place {
  std::string label;
  std::vector<NodeId> gpus = {};
  std::vector<NodeId> switches = {};
  std::size_t size() const { return gpus.size() + switches.size(); }
};

struct Places {
  std::vector<Place> all;
  std::vector<int> of_node;  ///< one a node
  /// Places that hold more than one node.
  std::size_t num_groups() const;
};

/// Every node in exactly one place. GPUs of a chassis share one; switches that only the GPUs of one place are
/// linked to are inside it. Where no GPU has a chassis, a switch and the GPUs that are linked to nothing else
/// are one. All others stand alone.
Places places_of(const Topology& topology);

/// A row of the timeline: links whose utilisation is shown as one.
struct Row {
  std::string label;
  std::vector<LinkId> links;
};

/// One row a link where there are at most `most`, else one a pair of places, or blocks of neighbours; never
/// more than `most` (>= 4). Every link is in one row.
std::vector<Row> timeline_rows(const Topology& topology, const Places& places, std::size_t most);

/// One a link: its row.
std::vector<int> row_of_links(const std::vector<Row>& rows, std::size_t num_links);

}  // namespace rondo::pictures
