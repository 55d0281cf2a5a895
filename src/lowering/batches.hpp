#pragma once

#include <vector>

#include "layout.hpp"
#include "transfers.hpp"

namespace rondo::lowering {

/// A place in a GPU's buffers. In scratch, `range` counts from the beginning of an area, -1 while that is
/// open.
struct Spot {
  msccl::Range range = {};
  int area = -1;

  bool same_area(const Spot& other) const { return range.buffer == other.range.buffer && area == other.area; }
  friend bool operator==(const Spot&, const Spot&) = default;
};

/// Transfers that one send step and one receive step carry: chunks that lie side by side at both ends. Places
/// are those of instance 0.
struct Batch {
  int src = -1;
  int dst = -1;
  std::vector<int> chunks = {};   ///< in the order of their places
  std::vector<int> follows = {};  ///< batches whose arrivals at src come right before: what it carries
  int count = 0;                  ///< in units of the program's chunks
  double start_us = 0;
  double arrival_us = 0;    ///< of the last chunk
  int instance_stride = 0;  ///< Layout::instance_stride
  Spot from = {};
  Spot to = {};
  bool adds = false;    ///< what arrives is added to what is at `summand`
  Spot summand = {};    ///< where `adds`
  bool clears = false;  ///< nobody reads at src what it carries once it has left
  /// The same of those that leave src in the same transfers, which switches copy; -1: no other does.
  int multicast = -1;
};

/// A batch leaves its source, or is taken at its destination.
struct Event {
  int batch = -1;
  bool is_arrival = false;
};

/// Of one partial sum: all of `earlier` comes before all of `later`.
struct Precedence {
  std::vector<Event> earlier = {};
  std::vector<Event> later = {};
};

struct Traffic {
  std::vector<Batch> batches = {};  ///< in the order of their starts
  std::vector<int> areas = {};      ///< of scratch: how many units each has
  std::vector<Precedence> order = {};
};

/// Merges transfers, given in order, into batches of at most `max_count`. Transfers of a connection are
/// merged only where the later chunk is already there when the earlier one is sent, and only where nothing
/// starts at the destination with one of the chunks, or with one that is overtaken, before all have arrived.
///
/// A GPU has its partial sum of a chunk where it wants the chunk in the end, else in scratch; the first
/// arrival adds to the GPU's input. `order` keeps the sends of a partial sum after the arrivals that they
/// include and, where they read the same memory, before those that they do not.
Traffic merge(const std::vector<Delivery>& deliveries, const Layout& layout, int max_count);

}  // namespace rondo::lowering
