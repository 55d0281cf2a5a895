#pragma once

#include <array>
#include <memory>
#include <optional>

#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

/// Random fabrics where messages cost, and schedules on them, for what is proven of all schedules.
namespace rondo {

/// 4 to 6 GPUs around one or two switches of some kind, or on a one-way ring with more links; messages cost
/// on most links, and on all links are alike or not.
inline std::shared_ptr<const Topology> random_costly_fabric(Random& random, bool is_even) {
  const std::size_t gpus = 4 + random.below(3);
  std::vector<Node> nodes(gpus);
  std::vector<Link> links;
  constexpr std::array kGBps = {5.0, 12.5, 25.0, 100.0};
  const double cost_us = 0.5 + random.unit();
  const double even_GBps = kGBps[random.below(kGBps.size())];
  const auto connect = [&](std::size_t a, std::size_t b) {
    Link next{NodeId(a), NodeId(b), is_even ? even_GBps : kGBps[random.below(kGBps.size())]};
    next.message_us = is_even ? cost_us : random.unit() < 0.2 ? 0 : 2 * random.unit();
    if (random.unit() < 0.4) next.latency_us = random.unit();
    links.push_back(next);
  };
  if (random.unit() < 0.7) {
    const std::size_t switches = 1 + random.below(2);
    for (std::size_t s = 0; s < switches; ++s) {
      Node sw = network_switch(random.unit() < 0.2 ? Forwarding::store_and_forward : Forwarding::cut_through);
      sw.multicast = switches == 2 || random.unit() < 0.6;
      sw.reduce = random.unit() < 0.2;
      sw.buffer_bytes = 1e9;
      nodes.push_back(sw);
    }
    for (std::size_t g = 0; g < gpus; ++g) {
      for (std::size_t s = gpus; s < nodes.size(); ++s) {
        if (switches == 2 && (g + s) % 2 == 1) continue;
        connect(g, s);
        connect(s, g);
      }
    }
    if (switches == 2) {
      connect(gpus, gpus + 1);
      connect(gpus + 1, gpus);
    }
  }
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = 0; b < gpus; ++b) {
      const bool on_ring = b == (a + 1) % gpus && nodes.size() == gpus;
      if (a != b && (on_ring || random.unit() < (nodes.size() > gpus ? 0.1 : 0.35))) connect(a, b);
    }
  }
  return fabric(nodes, links, {});
}

/// By list scheduling, quickly. Nothing where the engine has a fault that the replay finds, as on some of
/// these fabrics; others test engines.
inline std::optional<SynthesisResult> solved_by_lists(const std::shared_ptr<const Topology>& topology,
                                                      const Demand& demand) {
  SolveOptions options;
  options.engine = "list";
  options.improve_work = 5e3;
  if (demand.collective() != Collective::allreduce) options.chunks = 1;
  options.join = false;  // takes seconds
  try {
    return synthesize({topology, demand, options}, {*make_local_communicator()});
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal) throw;
    return std::nullopt;
  }
}

}  // namespace rondo
