#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "carried.hpp"
#include "origins.hpp"
#include "rondo/core/certificate.hpp"

namespace rondo::certificates {

/// The bytes that count in a certificate `knowledge`, and the places that can have them: GPUs and
/// store-and-forward switches, by the numbers of their nodes, and behind all nodes the sets of nodes.
/// Refuses a certificate that is not one, or of which no bytes count. Keeps references to all it is given.
class KnowledgePlaces {
 public:
  struct Place {
    std::vector<std::pair<double, double>> at_first = {};  ///< ready time, ascending, and bytes up to then
    std::vector<std::size_t> entering = {};                ///< links
    std::vector<std::size_t> within = {};                  ///< places that contain it
    std::vector<std::size_t> fed_by = {};                  ///< places that contain all origins of those links
    Wide delay_us = 0;                                     ///< at least, on those links
  };

  KnowledgePlaces(const Topology& topology, const Demand& demand, const KnowledgeCertificate& certificate);

  double all_bytes() const { return all_bytes_; }
  const Origins& origins() const { return origins_; }
  std::size_t number() const { return places_.size(); }
  const Place& operator[](std::size_t place) const { return places_[place]; }
  /// Those that are places: sets, the largest first, then nodes.
  const std::vector<std::size_t>& order() const { return order_; }
  /// The sets that contain all origins of the link.
  const std::vector<std::size_t>& feeding(LinkId l) const { return feeding_[l.index()]; }

 private:
  /// Bytes that are at some nodes at first, each from a time on.
  struct Datum {
    double bytes = 0;
    std::vector<std::pair<NodeId, double>> holders;
  };

  void check() const;
  void count(const Demand& demand);
  void make_places();
  std::vector<std::size_t> sets_with_origins(LinkId l) const;
  Place made_place(std::size_t index) const;

  bool is_named(GpuId source) const;
  std::size_t nodes() const { return topology_.num_nodes(); }
  const std::vector<NodeId>& set(std::size_t place) const { return certificate_.sets[place - nodes()]; }
  bool contains(std::size_t place, NodeId n) const {
    return place < nodes() ? place == n.index() : inside_[place - nodes()][n.index()] != 0;
  }

  const Topology& topology_;
  const KnowledgeCertificate& certificate_;
  Origins origins_;
  std::vector<Datum> data_ = {};
  double all_bytes_ = 0;
  std::vector<std::vector<char>> inside_ = {};  ///< per set one flag a node
  std::vector<Place> places_ = {};              ///< by node, then sets
  std::vector<std::size_t> order_ = {};
  std::vector<std::vector<std::size_t>> feeding_ = {};  ///< per link
};

}  // namespace rondo::certificates
