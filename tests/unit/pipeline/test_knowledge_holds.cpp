#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "costly_fabrics.hpp"
#include "rondo/bounds/bounds.hpp"
#include "rondo/bounds/knowledge.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/registry.hpp"

/// Knowledge, found and changed at random, against schedules on random fabrics where messages cost. Others
/// than those of the test suite: --gtest_random_seed=1, 2 and so on.
namespace rondo::test_knowledge_holds {
namespace {

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
    const auto topology = random_costly_fabric(random, which >= kForwards || random.unit() < 0.4);
    const double bytes = 100 * std::pow(10.0, static_cast<double>(random.below(4)));
    const Demand demand = make_demand(collective, bytes, topology->num_gpus(), 1);
    const auto solved = solved_by_lists(topology, demand);
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
