#pragma once

#include <span>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/model/formulation.hpp"

namespace rondo {

/// What one GPU sends under unicast demand, for itself and for the others of its orbit.
struct Origin {
  GpuId gpu;
  double size = 1;                   ///< origins in its orbit
  std::vector<double> wanted = {};   ///< bytes, per node
  double ready_us = 0;               ///< when it holds all of it
  std::vector<int> link_orbit = {};  ///< per link; links of one orbit carry equal flows of this origin
  std::vector<int> node_orbit = {};
  OrbitTable links{{}};
  OrbitTable nodes{{}};

  /// The number of links of an orbit that enter (leave) each node of the orbit at their heads (tails).
  double links_a_head(int link_orbit, const Link& member) const;
  double links_a_tail(int link_orbit, const Link& member) const;
};

/// The GPUs that send, ascending, or one of each orbit of the instance. Throws Error(unavailable) for
/// multicast demand, naming `model`.
std::vector<Origin> origins_of(const Instance& instance, const char* model);

/// Loads of links as linear forms of the flows of representatives.
class LinkLoads {
 public:
  /// The flow over an orbit of links of an origin counts `weight` times.
  struct Share {
    std::size_t origin;
    int link_orbit;
    double weight;
  };

  LinkLoads(const Instance& instance, const std::vector<Origin>& origins);
  /// The load that the flows put on all of `links` together.
  std::vector<Share> on(std::span<const LinkId> links) const;
  /// Orbits of links under the whole group.
  const OrbitTable& orbits() const { return orbits_; }
  int orbit_of(std::size_t link) const { return orbit_[link]; }

 private:
  std::vector<int> orbit_;
  OrbitTable orbits_;
  std::vector<std::vector<Share>> shares_;  ///< of one link, per orbit
};

/// Bytes of an average contribution.
double mean_contribution_bytes(const Demand& demand);

}  // namespace rondo
