#pragma once

#include <vector>

#include "layout.hpp"
#include "transfers.hpp"

namespace rondo::lowering {

/// Transfers that one send step and one receive step carry: chunks that lie side by side at both ends.
struct Batch {
  int src = -1;
  int dst = -1;
  std::vector<int> chunks = {};   ///< in the order of their places
  std::vector<int> parents = {};  ///< per chunk: the batch that brings it to src; -1: it starts there
  int count = 0;                  ///< in units of the program's chunks
  double start_us = 0;
  double arrival_us = 0;    ///< of the last chunk
  int instance_stride = 0;  ///< Layout::instance_stride
  /// The places of instance 0. In scratch, `from` is counted from the beginning of the parent and `to` is
  /// still open: -1.
  msccl::Range from = {};
  msccl::Range to = {};
};

/// Merges transfers, given in order, into batches of at most `max_count`, in order. Transfers of a connection
/// are merged only where the later chunk is already there when the earlier one is sent, and only where
/// nothing starts at the destination with one of the chunks, or with one that is overtaken, before all have
/// arrived.
std::vector<Batch> merge(const std::vector<Delivery>& deliveries, const Layout& layout, int max_count);

}  // namespace rondo::lowering
