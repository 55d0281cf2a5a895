#include <optional>

#include "certificates.hpp"
#include "mutated_time_cut.hpp"
#include "unrolled_network.hpp"

namespace rondo::test_time_cut_mutations {
namespace {

TEST(TimeCutMutations, ProveNoMoreThanTheFlowOfLeastTime) {
  Random random(7);
  int accepted = 0;
  int stronger = 0;
  int refused = 0;
  while (accepted + refused < 1000) {
    const Case asked = random_case(random);
    std::vector<int> least;
    std::vector<std::optional<TimeCutCertificate>> best(asked.topology.num_gpus());
    for (std::size_t g = 0; g < best.size(); ++g) {
      least.push_back(least_steps(asked, GpuId(g)));
      if (least[g] == 1) continue;
      const Unrolled network(asked, GpuId(g), least[g] - 1);
      best[g] = TimeCutCertificate{GpuId(g), network.opening(network.cut()), asked.backwards};
    }
    for (std::size_t g = 0; g < least.size(); ++g) {
      if (!best[g]) continue;
      const double proven_us = sound_bound_of(asked.topology, asked.demand, *best[g]);
      EXPECT_EQ(proven_us * kSteps, least[g] - 1);
      for (int i = 0; i < 5; ++i) {
        const TimeCutCertificate changed = mutated(*best[g], random);
        try {
          const double us = sound_bound_of(asked.topology, asked.demand, changed);
          ASSERT_LE(us * kSteps, least[changed.gpu.index()] * (1 + 1e-9));
          ++accepted;
          if (us > proven_us) ++stronger;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ExitCode::bad_data);
          ++refused;
        }
      }
    }
  }
  // Between two steps there is room for better ones.
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 300);
  EXPECT_GT(stronger, 10);
}

}  // namespace
}  // namespace rondo::test_time_cut_mutations
