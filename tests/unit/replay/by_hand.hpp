#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rondo/core/replay.hpp"

/// Topologies, demands and schedules small enough to check by hand: at 1 GB/s a chunk of 1000 bytes takes 1
/// us.
namespace rondo {

inline constexpr double kUs = 1000;  ///< bytes that 1 GB/s carries in a microsecond

class Fabric {
 public:
  explicit Fabric(int gpus) { data_.nodes.resize(static_cast<std::size_t>(gpus)); }

  int cut_through(bool multicast = true, bool reduce = false) {
    return add({.kind = NodeKind::switch_,
                .multicast = multicast,
                .reduce = reduce,
                .forwarding = Forwarding::cut_through});
  }
  int store_and_forward(double buffer_bytes, bool multicast = true, bool reduce = false) {
    return add({.kind = NodeKind::switch_,
                .multicast = multicast,
                .reduce = reduce,
                .forwarding = Forwarding::store_and_forward,
                .buffer_bytes = buffer_bytes});
  }
  int link(int src, int dst, double bandwidth_GBps = 1, double latency_us = 0, double message_us = 0) {
    data_.links.push_back({NodeId{src}, NodeId{dst}, bandwidth_GBps, latency_us, message_us});
    return static_cast<int>(data_.links.size()) - 1;
  }
  int changing_link(int src, int dst, const std::vector<BandwidthStep>& steps, double latency_us = 0,
                    double message_us = 0) {
    data_.links.push_back({NodeId{src}, NodeId{dst}, steps.front().GBps, latency_us, message_us, steps});
    return static_cast<int>(data_.links.size()) - 1;
  }
  void share(const std::vector<int>& links, double bandwidth_GBps) {
    std::vector<LinkId> ids;
    for (const int l : links) ids.emplace_back(l);
    data_.shared_bandwidth.push_back({"nic", std::move(ids), bandwidth_GBps});
  }
  Topology build() const { return Topology(data_); }

 private:
  int add(Node node) {
    data_.nodes.push_back(std::move(node));
    return static_cast<int>(data_.nodes.size()) - 1;
  }
  TopologyData data_;
};

/// 0 -> 1 at 1 GB/s in 5 us, and over switch 2 in 4 us and, at 3 GB/s, 2 us.
inline Topology two_paths(double message_us = 0) {
  Fabric fabric(2);
  const int sw = fabric.cut_through();
  fabric.link(0, 1, 1, 5, message_us);
  fabric.link(0, sw, 10, 4, message_us);
  fabric.link(sw, 1, 3, 2, message_us);
  return fabric.build();
}

inline Contribution part(int origin, double bytes, const std::vector<int>& destinations,
                         double ready_us = 0) {
  Contribution result{GpuId{origin}, bytes, {}, ready_us};
  for (const int g : destinations) result.destinations.emplace_back(g);
  return result;
}

inline std::vector<GpuId> gpus(const std::vector<int>& numbers) {
  std::vector<GpuId> result;
  for (const int g : numbers) result.emplace_back(g);
  return result;
}

/// What `destinations` want is the sum of what `sources` have.
inline Contribution sum_of(const std::vector<int>& sources, double bytes,
                           const std::vector<int>& destinations) {
  Contribution result{.origin = GpuId{sources.front()}, .bytes = bytes};
  result.destinations = gpus(destinations);
  result.sources = gpus(sources);
  result.reduce = true;
  return result;
}

inline Demand custom(const Topology& topology, std::vector<Contribution> parts) {
  double size = 0;
  for (const Contribution& p : parts) size += p.bytes;
  return Demand(Collective::custom, size, topology.num_gpus(), std::move(parts), 1);
}

inline Send send(int chunk, int link, double start_us, double end_us, double arrival_us) {
  return {ChunkId{chunk}, LinkId{link}, start_us, end_us, arrival_us};
}
/// Over a link without latency.
inline Send send(int chunk, int link, double start_us, double end_us) {
  return send(chunk, link, start_us, end_us, end_us);
}

/// Of a schedule that the replay accepts and that ends when it says.
inline double finish_of(const Topology& topology, const Demand& demand, const Schedule& schedule) {
  const ReplayResult result = replay(topology, demand, schedule.sends);
  EXPECT_TRUE(result.valid()) << result.violation.value_or("");
  EXPECT_DOUBLE_EQ(result.finish_us, schedule.finish_us);
  return result.finish_us;
}

inline Send numbered(int transfer, Send send) {
  send.transfer = transfer;
  return send;
}
inline Send at_rate(double rate_GBps, Send send) {
  send.rate_GBps = rate_GBps;
  return send;
}
/// Its far end adds what it brings.
inline Send adding(Send send) {
  send.op = SendOp::reduce;
  return send;
}

/// The sends are valid in any order and end at `finish_us`.
inline void expect_finish(const Topology& topology, const Demand& demand, std::vector<Send> sends,
                          double finish_us) {
  for (int reversed = 0; reversed < 2; ++reversed) {
    const ReplayResult result = replay(topology, demand, sends);
    EXPECT_TRUE(result.valid()) << result.violation.value_or("");
    EXPECT_DOUBLE_EQ(result.finish_us, finish_us);
    sends = std::vector<Send>(sends.rbegin(), sends.rend());
  }
}

/// The sends are rejected, in any order, with a sentence that holds all of `words`.
inline void expect_violation(const Topology& topology, const Demand& demand, std::vector<Send> sends,
                             const std::vector<std::string>& words) {
  for (int reversed = 0; reversed < 2; ++reversed) {
    const ReplayResult result = replay(topology, demand, sends);
    ASSERT_FALSE(result.valid()) << "finish " << result.finish_us;
    for (const std::string& word : words) {
      EXPECT_NE(result.violation->find(word), std::string::npos)
          << "'" << word << "' in: " << *result.violation;
    }
    sends = std::vector<Send>(sends.rbegin(), sends.rend());
  }
}

}  // namespace rondo
