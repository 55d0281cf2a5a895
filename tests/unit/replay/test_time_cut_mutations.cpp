#include <algorithm>
#include <optional>

#include "certificates.hpp"
#include "unrolled_network.hpp"

namespace rondo::test_time_cut_mutations {
namespace {

TimeCutCertificate mutated(TimeCutCertificate cut, Random& random) {
  const auto some = [&]() -> double& { return cut.alpha_us[random.below(cut.alpha_us.size())]; };
  const double by_us = (random.unit() < 0.5 ? 1 : 0.01) * (1 + below(random, 3));
  switch (random.below(7)) {
    case 0:
      some() += by_us;
      break;
    case 1: {
      double& time = some();
      time = std::max(0.0, time - by_us);
      break;
    }
    case 2:
      std::swap(some(), some());
      break;
    case 3:  // one opens when another one does
      some() = some();
      break;
    case 4:  // all that opens after a time opens later, or earlier
      for (const double from_us = some(), shift_us = random.unit() < 0.7 ? by_us : -by_us;
           double& time : cut.alpha_us) {
        if (time >= from_us) time = std::max(0.0, time + shift_us);
      }
      break;
    case 5:
      cut.gpu = GpuId(random.below(cut.alpha_us.size()));
      break;
    default:
      for (double& time : cut.alpha_us) time *= 1 + 0.01 * by_us;
  }
  return cut;
}

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
