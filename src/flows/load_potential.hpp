#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// What a hop takes of one resource, a link or a group of shared bandwidth behind the links: one number for
/// all hops that take the same.
using UseId = std::uint32_t;

/// sum over resources of (load / scale)^p, and what one more chunk adds to it. A resource's load is the time
/// that the chunks put on it take.
class LoadPotential {
 public:
  LoadPotential(const Topology& topology, const std::vector<Hop>& hops);

  const std::vector<UseId>& uses_of_hop(std::size_t hop) const { return uses_of_hop_[hop]; }

  /// `exponent`: a power of two.
  void set_exponent(int exponent);
  void set_scale(double scale_us);
  void add(std::span<const UseId> uses, double bytes_of_chunk, int chunks);

  double greatest_load_us() const;
  /// (load / scale)^p, of any load.
  double of(double load_us) const;
  /// By one more chunk.
  double growth(UseId use, double bytes_of_chunk);
  /// Derivative by a load of this size, but for a factor that is the same for all.
  double slope(double load_us) const;
  /// Derivative by the resource's load, times what the bytes take.
  double slope(UseId use, double bytes) const;

 private:
  struct Use {
    std::size_t resource;
    double us_per_byte;
    double message_us;
    double known_bytes;  ///< whose growth is known; below 0: none
    double known_growth;

    double us(double bytes) const { return message_us + bytes * us_per_byte; }
  };
  UseId number_of(std::size_t resource, double us_per_byte, double message_us);
  void forget_growth();

  std::vector<std::vector<UseId>> uses_of_hop_;
  std::vector<Use> uses_;
  std::vector<std::vector<UseId>> uses_of_resource_;
  std::vector<double> load_us_;
  int exponent_ = 1;
  double scale_us_ = 1;
};

}  // namespace rondo
