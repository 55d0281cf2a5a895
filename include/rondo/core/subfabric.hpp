#pragma once

#include <vector>

#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// Per node, whether nothing of the demand may pass it: GPUs outside the group of a demand that forbids
/// relays.
std::vector<char> forbidden_nodes(const Topology& topology, const Demand& demand);

/// What is left of a fabric for a demand that forbids relays: its members, the switches that still have a
/// link, and the links between those. GPUs, nodes and links are numbered anew, in the old order, so that the
/// demand there is one over all GPUs. What is found there is taken back to the numbers of the whole fabric.
class Subfabric {
 public:
  /// Throws Error(internal) where the demand does not forbid relays.
  Subfabric(const Topology& whole, const Demand& demand);

  const Topology& topology() const { return topology_; }
  /// Of a demand that has the group of the one given at first.
  Demand demand_of(const Demand& demand) const;
  /// Throws Error(bad_data) where it names what the group may not use, or is not of the whole fabric.
  Certificate certificate_inside(const Certificate& certificate) const;
  Certificate certificate_of_whole(const Certificate& certificate) const;
  /// Throws Error(bad_data) for sends over links that are left out.
  std::vector<Send> sends_inside(std::vector<Send> sends) const;
  std::vector<Send> sends_of_whole(std::vector<Send> sends) const;

 private:
  Topology restricted(const Topology& whole, const Demand& demand);
  /// Those that are there. Throws Error(bad_data) for one that `whole` does not have.
  std::vector<NodeId> nodes_inside(const std::vector<NodeId>& nodes) const;
  KnowledgeCertificate knowledge_inside(const KnowledgeCertificate& knowledge) const;
  std::vector<double> times_inside(const std::vector<double>& alpha_us) const;
  std::vector<double> times_of_whole(const std::vector<double>& alpha_us) const;
  PricesCertificate prices_inside(const PricesCertificate& prices) const;
  PricesCertificate prices_of_whole(const PricesCertificate& prices) const;

  std::vector<NodeId> node_inside_;  ///< per node of the whole; invalid: left out
  std::vector<NodeId> node_outside_;
  std::vector<LinkId> link_inside_;
  std::vector<LinkId> link_outside_;
  std::vector<std::size_t> group_outside_;  ///< of shared bandwidth
  std::size_t groups_of_whole_ = 0;
  std::vector<GpuId> members_;
  Topology topology_;
};

/// A schedule without relays on what is left of the fabric, in the numbers there. Throws Error(bad_data)
/// where it uses more.
ProvenSchedule inside_group(const ProvenSchedule& proven);

}  // namespace rondo
