#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "rondo/bounds/bounds.hpp"
#include "rondo/bounds/knowledge.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/registry.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "topologies.hpp"

/// Knowledge, found and changed at random, against schedules on random fabrics where messages cost. Others
/// than those of the test suite: --gtest_random_seed=1, 2 and so on.
namespace rondo::test_knowledge_holds {
namespace {

/// 4 to 6 GPUs around one or two switches of some kind, or on a one-way ring with more links; messages cost
/// on most links, and on all links are alike or not.
std::shared_ptr<const Topology> random_fabric(Random& random, bool is_even) {
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

KnowledgeCertificate mutated(KnowledgeCertificate certificate, Random& random) {
  auto& times = certificate.times_us;
  const auto some = [&] { return random.below(times.size()); };
  switch (random.below(6)) {
    case 0:
      times.push_back(times.back() * (1 + random.unit()));
      break;
    case 1:  // fewer periods
      for (std::size_t i = 0; i < 1 + times.size() / 4; ++i)
        times.erase(times.begin() + static_cast<long>(some()));
      break;
    case 2:
      for (double& us : times) us *= 1 + 0.2 * random.unit();
      break;
    case 3:
      if (!certificate.sets.empty())
        certificate.sets.erase(certificate.sets.begin() +
                               static_cast<long>(random.below(certificate.sets.size())));
      times.push_back(times.back() * 1.05);
      break;
    case 4:
      for (auto& set : certificate.sets) {
        if (random.unit() < 0.5) set.erase(set.begin() + static_cast<long>(random.below(set.size())));
      }
      times.push_back(times.back() * 1.05);
      break;
    default:
      if (certificate.sources.size() > 1)
        certificate.sources.erase(certificate.sources.begin() +
                                  static_cast<long>(random.below(certificate.sources.size())));
      times.push_back(times.back() * 1.05);
  }
  return certificate;
}

/// Nothing where the engine has a fault that the replay finds, as on some of these fabrics; others test
/// engines.
std::optional<SynthesisResult> solved_or_none(const Problem& problem) {
  try {
    return synthesize(problem, {*make_local_communicator()});
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal) throw;
    return std::nullopt;
  }
}

TEST(KnowledgeHolds, NoScheduleEndsBeforeIt) {
  // 0 unless --gtest_random_seed says otherwise.
  Random random(static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)));
  // The last five are scheduled backwards too, where slow transfers that share a link may begin closer
  // together than their messages allow, unless all links are alike.
  const std::array collectives = {Collective::allgather, Collective::alltoall,       Collective::broadcast,
                                  Collective::allreduce, Collective::reduce_scatter, Collective::gather,
                                  Collective::scatter,   Collective::reduce};
  constexpr std::size_t kForwards = 3;
  int best = 0;
  int near = 0;
  int accepted = 0;
  int refused = 0;
  constexpr int kFabrics = 16;
  for (int i = 0; i < kFabrics; ++i) {
    const std::size_t which = static_cast<std::size_t>(i) % collectives.size();
    const Collective collective = collectives[which];
    const auto topology = random_fabric(random, which >= kForwards || random.unit() < 0.4);
    const double bytes = 100 * std::pow(10.0, static_cast<double>(random.below(4)));
    const Demand demand = make_demand(collective, bytes, topology->num_gpus(), 1);
    SolveOptions options;
    options.engine = "list";
    options.improve_work = 5e3;
    if (collective != Collective::allreduce) options.chunks = 1;
    options.join = false;  // takes seconds
    const auto solved = solved_or_none({topology, demand, options});
    if (!solved) continue;
    const SynthesisResult& result = *solved;
    verify(result.proven);
    const double finish_us = result.proven.schedule.finish_us;
    const Bounds bounds = lower_bounds({topology, demand}, make_toolbox());
    for (const LowerBound& bound : bounds.all) EXPECT_LE(bound.us, finish_us * (1 + 1e-9)) << i;
    if (certificate_kind(bounds.best().certificate) == "knowledge") ++best;
    if (finish_us < 1.25 * bounds.best().us) ++near;
    // Also where others prove more.
    const auto found = find_knowledge(*topology, demand, trivial_symmetry(*topology), {}, finish_us / 10);
    if (!found) continue;
    EXPECT_LE(found->us, finish_us * (1 + 1e-9)) << i;
    EXPECT_EQ(found->us, sound_bound_of(*topology, demand, found->certificate));
    for (int k = 0; k < 20; ++k) {
      const auto changed = mutated(std::get<KnowledgeCertificate>(found->certificate), random);
      try {
        const double us = sound_bound_of(*topology, demand, changed);
        EXPECT_LE(us, finish_us * (1 + 1e-9)) << i;
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data);
        ++refused;
      }
    }
  }
  // It would hold trivially if it were small.
  EXPECT_GE(best, 1);
  EXPECT_GE(near, 2);
  EXPECT_GE(accepted, 20);
  EXPECT_GE(refused, 50);
}

}  // namespace
}  // namespace rondo::test_knowledge_holds
