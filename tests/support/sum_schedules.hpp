#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/core/units.hpp"

/// Schedules of sums as textbooks have them, round by round over direct links.
namespace rondo {

/// A chunk from a GPU to another, which adds it to its sum or takes it instead.
struct SumHop {
  int chunk = 0;
  int from = 0;
  int to = 0;
  SendOp op = SendOp::reduce;
};
using SumRounds = std::vector<std::vector<SumHop>>;

/// Every round begins when the one before has arrived; what takes the same link in a round goes one after
/// another.
inline ProvenSchedule in_rounds(const Topology& topology, const Demand& demand, const SumRounds& rounds) {
  std::map<std::pair<int, int>, LinkId> links;
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.links()[l];
    links.try_emplace({link.src.value, link.dst.value}, LinkId(l));
  }
  Schedule schedule;
  double begin_us = 0;
  for (const auto& round : rounds) {
    std::map<LinkId, double> free_us;
    for (const SumHop& hop : round) {
      const LinkId id = links.at({hop.from, hop.to});
      const Link& link = topology.link(id);
      double& start_us = free_us.try_emplace(id, begin_us).first->second;
      const double end_us = start_us + transmission_us(demand.bytes(ChunkId{hop.chunk}), link.bandwidth_GBps);
      schedule.sends.push_back({.chunk = ChunkId{hop.chunk},
                                .link = id,
                                .start_us = start_us,
                                .end_us = end_us,
                                .arrival_us = end_us + link.latency_us,
                                .op = hop.op});
      schedule.finish_us = std::max(schedule.finish_us, end_us + link.latency_us);
      start_us = end_us;
    }
    begin_us = schedule.finish_us;
  }
  canonicalise(schedule);
  return {.topology = topology, .demand = demand, .schedule = schedule};
}

/// Around a ring of links g -> g + 1: part p (of equal numbers of chunks) starts at GPU p + 1, gathers what
/// it passes and ends at GPU p; `spread`: and goes round once more.
inline SumRounds ring_sums(int gpus, int chunks_of_a_part, bool spread) {
  SumRounds rounds(static_cast<std::size_t>(spread ? 2 * (gpus - 1) : gpus - 1));
  for (int r = 0; r < static_cast<int>(rounds.size()); ++r) {
    for (int part = 0; part < gpus; ++part) {
      const int from = (part + 1 + r) % gpus;
      for (int k = 0; k < chunks_of_a_part; ++k) {
        rounds[static_cast<std::size_t>(r)].push_back({part * chunks_of_a_part + k, from, (from + 1) % gpus,
                                                       r < gpus - 1 ? SendOp::reduce : SendOp::copy});
      }
    }
  }
  return rounds;
}

/// The rounds once more, backwards: what is summed up goes out the way it came in.
inline void add_way_back(SumRounds& rounds) {
  for (std::size_t r = rounds.size(); r-- > 0;) {
    rounds.push_back(rounds[r]);
    for (SumHop& hop : rounds.back()) {
      std::swap(hop.from, hop.to);
      hop.op = SendOp::copy;
    }
  }
}

/// Recursive halving: with a partner half as far away in each round, a GPU exchanges the partial sums of the
/// halves that the other one is to have; `spread`: and doubling back. `gpus` is a power of two.
inline SumRounds halving_sums(int gpus, int chunks_of_a_part, bool spread) {
  SumRounds rounds;
  for (int distance = gpus / 2; distance >= 1; distance /= 2) {
    rounds.emplace_back();
    for (int g = 0; g < gpus; ++g) {
      const int partner = g ^ distance;
      for (int part = 0; part < gpus; ++part) {
        // Parts that agree with the partner in this bit and all higher ones.
        if ((part ^ partner) / distance != 0) continue;
        for (int k = 0; k < chunks_of_a_part; ++k)
          rounds.back().push_back({part * chunks_of_a_part + k, g, partner});
      }
    }
  }
  if (spread) add_way_back(rounds);
  return rounds;
}

/// Full vectors exchanged with partners at distances 1, 2, 4, ...: each adds what the other one holds.
inline SumRounds doubling_sums(int gpus, int chunks) {
  SumRounds rounds;
  for (int distance = 1; distance < gpus; distance *= 2) {
    rounds.emplace_back();
    for (int g = 0; g < gpus; ++g) {
      for (int c = 0; c < chunks; ++c) rounds.back().push_back({c, g, g ^ distance});
    }
  }
  return rounds;
}

/// A binomial tree to GPU 0; `spread`: and back.
inline SumRounds tree_sums(int gpus, int chunks, bool spread) {
  SumRounds rounds;
  for (int distance = 1; distance < gpus; distance *= 2) {
    rounds.emplace_back();
    for (int g = distance; g < gpus; g += 2 * distance) {
      for (int c = 0; c < chunks; ++c) rounds.back().push_back({c, g, g - distance});
    }
  }
  if (spread) add_way_back(rounds);
  return rounds;
}

}  // namespace rondo
