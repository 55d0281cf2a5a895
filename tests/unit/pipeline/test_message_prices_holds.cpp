#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "costly_fabrics.hpp"
#include "rondo/bounds/message_prices.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/pipeline/registry.hpp"

/// Prices of messages, found and changed at random, against schedules on random fabrics where messages cost.
/// Others than those of the test suite: --gtest_random_seed=1, 2 and so on.
namespace rondo::test_message_prices_holds {
namespace {

MessagePricesCertificate mutated(MessagePricesCertificate certificate, Random& random) {
  PricesCertificate& prices = certificate.prices;
  const auto some = [&](auto& all) -> auto& {
    return all[random.below(all.size())];
  };
  switch (random.below(7)) {
    case 0:
      prices.until_us *= 1 + 0.1 * random.unit();
      break;
    case 1:  // all periods longer
      prices.until_us *= 1.01;
      for (double& us : prices.from_us) us *= 1.01;
      break;
    case 2:
      some(prices.from_us) += prices.until_us * (random.unit() - 0.5) / 50;
      break;
    case 3:
      some(prices.price) *= random.unit() < 0.5 ? 0 : 2;
      break;
    case 4:
      some(prices.place) += random.unit() < 0.5 ? 1 : -1;
      break;
    case 5:
      certificate.parts += random.unit() < 0.5 ? 1 : -1;
      break;
    default:
      certificate.gpu = random.unit() < 0.2 ? GpuId{} : GpuId{random.below(6)};
  }
  return certificate;
}

TEST(MessagePricesHold, NoScheduleEndsBeforeThem) {
  // 0 unless --gtest_random_seed says otherwise.
  Random random(static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)));
  const std::array collectives = {Collective::allgather, Collective::alltoall, Collective::broadcast,
                                  Collective::allreduce, Collective::gather,   Collective::scatter};
  int found = 0;
  int near = 0;
  int accepted = 0;
  int refused = 0;
  constexpr int kFabrics = 10;
  for (int i = 0; i < kFabrics; ++i) {
    const Collective collective = collectives[static_cast<std::size_t>(i) % collectives.size()];
    const bool is_even = collective == Collective::allreduce || random.unit() < 0.4;
    const auto topology = random_costly_fabric(random, is_even);
    const double bytes = 1e3 * std::pow(10.0, static_cast<double>(random.below(3)));
    const Demand demand = make_demand(collective, bytes, topology->num_gpus(), 1);
    const auto solved = solved_by_lists(topology, demand);
    if (!solved) continue;
    verify(solved->proven);
    const double finish_us = solved->proven.schedule.finish_us;
    // Also where others prove more.
    const auto prices = find_message_prices(*topology, demand, trivial_symmetry(*topology),
                                            make_toolbox().column_master, finish_us / 3);
    if (!prices) continue;
    ++found;
    if (finish_us < 1.5 * prices->us) ++near;
    EXPECT_LE(prices->us, finish_us * (1 + 1e-9)) << i;
    EXPECT_EQ(prices->us, sound_bound_of(*topology, demand, prices->certificate));
    for (int k = 0; k < 20; ++k) {
      const auto changed = mutated(std::get<MessagePricesCertificate>(prices->certificate), random);
      try {
        EXPECT_LE(sound_bound_of(*topology, demand, changed), finish_us * (1 + 1e-9)) << i;
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data);
        ++refused;
      }
    }
  }
  // It would hold trivially if they were few, or small.
  EXPECT_GE(found, 3);
  EXPECT_GE(near, 1);
  EXPECT_GE(accepted, 20);
  EXPECT_GE(refused, 30);
}

}  // namespace
}  // namespace rondo::test_message_prices_holds
