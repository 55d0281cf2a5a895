#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rondo/core/hops.hpp"
#include "rondo/core/topology.hpp"

namespace rondo {

/// What to look at again when a link falls idle.
class WakeTable {
 public:
  explicit WakeTable(std::size_t num_links) : links_(num_links) {}

  /// A hop to `receiver` uses the link from `offset_us` after its start.
  void add(std::size_t link, double offset_us, int receiver);
  /// Hops over one of the links may wait for any of them. After all add(), once a group.
  void share(std::span<const std::size_t> links);
  /// After all add() and share(), before the look-ups.
  void finish();

  /// Receivers behind the hops that may start when the link falls idle, ascending.
  std::span<const int> receivers(std::size_t link) const { return links_[link].receivers; }
  /// How long after their starts those hops use their link, us, ascending.
  std::span<const double> offsets_us(std::size_t link) const { return links_[link].offsets_us; }

 private:
  struct Waiting {
    std::vector<double> offsets_us = {};
    std::vector<int> receivers = {};
  };
  static void append(Waiting& to, const Waiting& from);

  std::vector<Waiting> links_;
  std::vector<std::pair<std::size_t, Waiting>> shared_;  ///< links and what they wait for besides their own
};

/// Of links and GPUs; hops carry chunks of these sizes, in bytes.
WakeTable make_wake_table(const Topology& topology, const HopTable& hops,
                          std::span<const double> chunk_bytes);

}  // namespace rondo
