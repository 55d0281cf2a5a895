#include <algorithm>
#include <cmath>

#include "certificates.hpp"
#include "rondo/bounds/message_prices.hpp"
#include "rondo/core/cheapest_messages.hpp"
#include "rondo/core/subfabric.hpp"
#include "rondo/core/transposition.hpp"
#include "rondo/solvers/solvers.hpp"

/// Prices that messages pay for links: at 1 GB/s 10 KB take 10 us, and a message 1 us more.
namespace rondo::test_message_prices {
namespace {

Topology costly_line(int gpus) {
  Fabric fabric(gpus);
  for (int g = 0; g + 1 < gpus; ++g) fabric.link(g, g + 1, 1, 0, 1);
  return fabric.build();
}

/// Link 0 has the price 1 at all times.
MessagePricesCertificate flat(double until_us, int gpu, int parts = 1) {
  return {.prices = {{0}, until_us, {0}, {1}}, .parts = parts, .gpu = GpuId{gpu}};
}

std::optional<LowerBound> found_prices(const Topology& topology, const Demand& demand, double least_us) {
  return find_message_prices(topology, demand, find_symmetry(topology, demand), make_clp_column_master,
                             least_us);
}

// One message from 0 to T takes T / (T - 1) of the link for each byte: links earn T, bytes pay 10 T / (T -
// 1).
TEST(MessagePrices, ProveWhenBytesHaveToPayMoreThanLinksCanEarn) {
  const Topology line = costly_line(2);
  const Demand demand = custom(line, {part(0, 10 * kUs, {1})});
  EXPECT_EQ(sound_bound_of(line, demand, flat(10.9999, 1)), 10.9999);
  EXPECT_EQ(sound_bound_of(line, demand, flat(10.9999, -1)), 10.9999);
  EXPECT_EQ(sound_bound_of(line, demand, flat(5, 1)), 5);
  expect_refused(line, demand, flat(11, 1), "have to pay");
  expect_refused(line, custom(line, {part(0, 9.9 * kUs, {1})}), flat(10.9999, 1), "have to pay");
  // Nobody can be there before a message can: what ends by then pays without end.
  EXPECT_EQ(sound_bound_of(line, demand, flat(0.9, 1)), 0.9);
  // Ready 2 us later, in a period of its own.
  const Demand late = custom(line, {part(0, 10 * kUs, {1}, 2)});
  MessagePricesCertificate later{.prices = {{0, 2}, 12.9999, {1}, {1}}, .gpu = GpuId{1}};
  EXPECT_EQ(sound_bound_of(line, late, later), 12.9999);
  expect_refused(line, demand, later, "have to pay 0");
}

// The way's second link is 1 us behind its first one, and the message is there 3 us after it ends.
TEST(MessagePrices, OfAWayAreThoseOfItsLinksAsMuchLater) {
  Fabric fabric(2);
  const int center = fabric.cut_through();
  fabric.link(0, center, 2, 1);
  fabric.link(center, 1, 1, 2, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 10 * kUs, {1})});
  const auto second_link = [](double until_us) {
    return MessagePricesCertificate{.prices = {{0, 1, until_us - 2}, until_us, {3}, {1}}, .gpu = GpuId{1}};
  };
  EXPECT_EQ(sound_bound_of(topology, demand, second_link(13.9999)), 13.9999);
  expect_refused(topology, demand, second_link(14), "have to pay");
  MessagePricesCertificate early = second_link(13.9999);
  early.prices.from_us[1] = 0.9;
  expect_refused(topology, demand, early, "have to pay");
  const MessagePricesCertificate certificate = second_link(13);
  CheapestMessages cheapest(topology, certificate);
  cheapest.towards(GpuId{1});
  const std::vector<PaidMessage> messages = cheapest.messages(GpuId{0}, 0);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].steps.size(), 2U);
  EXPECT_EQ(messages[0].steps[1].latency_us, 1);
  EXPECT_EQ(messages[0].start_us, 0);
  EXPECT_EQ(messages[0].end_us, 10);
  EXPECT_EQ(messages[0].bytes_us(), 9);
  EXPECT_NEAR(cheapest.least_payment(GpuId{0}, 0), 10.0 / 9, 1e-9);
  EXPECT_TRUE(std::isinf(cheapest.least_payment(GpuId{1}, 13)));
}

// What starts in a part counts as if it did when the part begins. Where both links cost 1 all the time, two
// messages from 0 to T prove 11 us; one after the other they pay least with half of the time each, for 12 us.
TEST(MessagePrices, OfSeveralMessagesProveMoreInMoreParts) {
  const Topology line = costly_line(3);
  const Demand demand = custom(line, {part(0, 10 * kUs, {2})});
  const auto proven_us = [&](int parts) {
    double low_us = 0;
    double high_us = 100;
    while (high_us - low_us > 1e-4) {
      const double middle_us = 0.5 * (low_us + high_us);
      MessagePricesCertificate both = flat(middle_us, 2, parts);
      both.prices.place = {0, 1};
      both.prices.price = {1, 1};
      try {
        low_us = sound_bound_of(line, demand, both);
      } catch (const Error&) {
        high_us = middle_us;
      }
    }
    return low_us;
  };
  EXPECT_NEAR(proven_us(1), 11, 1e-3);
  EXPECT_GT(proven_us(4), 11.1);
  EXPECT_LT(proven_us(4), proven_us(64));
  EXPECT_GT(proven_us(64), 11.9);
  EXPECT_LT(proven_us(1024), 12);
}

TEST(MessagePrices, OfSourcesAreThoseOfDestinationsBackwards) {
  Fabric fabric(3);
  fabric.link(1, 0, 1, 0, 1);
  fabric.link(2, 0, 1, 0, 1);
  const Topology topology = fabric.build();
  const Demand sum = custom(topology, {sum_of({0, 1, 2}, 10 * kUs, {0})});
  MessagePricesCertificate certificate = flat(10.9999, 1);
  certificate.backwards = true;
  EXPECT_EQ(sound_bound_of(topology, sum, certificate), 10.9999);
  EXPECT_FALSE(std::get<MessagePricesCertificate>(transposed(Certificate(certificate))).backwards);
  certificate.prices.until_us = 11;
  expect_refused(topology, sum, certificate, "have to pay");
  // Forwards the source counts that pays most: GPU 1, over link 0, not GPU 2.
  EXPECT_EQ(sound_bound_of(topology, sum, flat(10.9999, 0)), 10.9999);
  expect_refused(topology, sum, flat(11, 0), "have to pay");
  Contribution partly = sum_of({0, 1, 2}, 10 * kUs, {0});
  partly.held = {{GpuId{1}, gpus({1, 2})}};
  expect_refused(topology, custom(topology, {partly}), flat(1, 0), "have to pay 0");
  Fabric shared(3);
  shared.link(1, 0, 1, 0, 1);
  shared.link(2, 0, 1, 1, 1);
  shared.share({0, 1}, 1);
  certificate.prices.until_us = 10;
  expect_refused(shared.build(), sum, certificate, "differ in latency");
}

// It may come to a switch twice, which no way does.
TEST(MessagePrices, CountNoSumThatMayComeDownThroughSwitches) {
  const auto topology_of = [](bool adds) {
    Fabric fabric(2);
    const int leaf = fabric.cut_through(true, adds);
    const int spine = fabric.cut_through(true, adds);
    fabric.link(0, leaf, 1, 0, 1);
    fabric.link(leaf, spine, 1, 0);
    fabric.link(spine, 1, 1, 0);
    fabric.link(1, 0, 1, 0, 1);
    return fabric.build();
  };
  const Demand for_both = custom(topology_of(true), {sum_of({0, 1}, 10 * kUs, {0, 1})});
  const Demand for_one = custom(topology_of(true), {sum_of({0, 1}, 10 * kUs, {1})});
  EXPECT_EQ(sound_bound_of(topology_of(false), for_both, flat(10.9999, 1)), 10.9999);
  EXPECT_EQ(sound_bound_of(topology_of(true), for_one, flat(10.9999, 1)), 10.9999);
  expect_refused(topology_of(true), for_both, flat(10.9999, 1), "have to pay 0");
}

TEST(MessagePrices, AreRefusedWhereTheyAreNone) {
  const Topology line = costly_line(3);
  const Demand demand = custom(line, {part(0, 10 * kUs, {1, 2})});
  const auto refuse = [&](const auto& change, const std::string& word) {
    MessagePricesCertificate messages = flat(10.9, 1);
    change(messages);
    expect_refused(line, demand, messages, word);
  };
  refuse([](auto& m) { m.parts = 0; }, "0 parts");
  refuse([](auto& m) { m.parts = 1025; }, "1025 parts");
  refuse([](auto& m) { m.gpu = GpuId{3}; }, "GPU 3 does not exist");
  refuse([](auto& m) { m.gpu = {}; }, "one source and one destination");
  refuse([](auto& m) { m.gpu = GpuId{0}; }, "have to pay 0");
  refuse([](auto& m) { m.prices.price[0] = NAN; }, "a price is nan");
  refuse([](auto& m) { m.prices.until_us = 0; }, "periods begin");
  refuse([](auto& m) { m.prices.place[0] = 2; }, "place 2");
  refuse([](auto& m) { m.backwards = true; }, "one destination each");
  refuse(
      [](auto& m) {
        m.parts = 1024;
        for (int k = 1; k < 100; ++k) m.prices.from_us.push_back(0.1 * k);
      },
      "too much to check");
  Fabric changing(2);
  changing.changing_link(0, 1, {{0, 1}, {50, 2}}, 0, 1);
  const Topology steps = changing.build();
  expect_refused(steps, custom(steps, {part(0, 10 * kUs, {1})}), flat(10.9, 1), "bandwidth changes");
  // What several have at first does not count.
  Contribution held = part(0, 10 * kUs, {2});
  held.sources = gpus({0, 1});
  expect_refused(line, custom(line, {held}), flat(10.9, 2), "have to pay 0");
}

TEST(MessagePrices, OfAGroupWithoutRelaysAreThoseOfItsPart) {
  const Topology line = costly_line(4);
  const Demand demand(Collective::custom, 10 * kUs, 4, {part(1, 10 * kUs, {2})}, 1,
                      {.group = gpus({1, 2}), .counts = {}, .relays = false});
  MessagePricesCertificate whole = flat(10.9999, 2);
  whole.prices.place = {1};
  EXPECT_EQ(sound_bound_of(line, demand, whole), 10.9999);
  const Subfabric inside(line, demand);
  const auto there = std::get<MessagePricesCertificate>(inside.certificate_inside(whole));
  EXPECT_EQ(there.gpu, GpuId{1});
  EXPECT_EQ(there.prices.place, (std::vector<std::int32_t>{0}));
  const auto again = std::get<MessagePricesCertificate>(inside.certificate_of_whole(there));
  EXPECT_EQ(again.gpu, whole.gpu);
  EXPECT_EQ(again.prices.place, whole.prices.place);
}

TEST(MessagePrices, AreFoundNearTheBest) {
  const Topology two = costly_line(2);
  const Demand direct = custom(two, {part(0, 10 * kUs, {1})});
  const auto found = found_prices(two, direct, 10);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->us, 11, 0.02);
  EXPECT_LT(found->us, 11);
  EXPECT_EQ(sound_bound_of(two, direct, found->certificate), found->us);
  EXPECT_FALSE(found_prices(two, direct, 11));
  // 12 us are proven by what crosses each link; a message is at the GPU between once it is whole.
  const Topology three = costly_line(3);
  const Demand relayed = custom(three, {part(0, 10 * kUs, {2})});
  const auto further = found_prices(three, relayed, 12);
  ASSERT_TRUE(further);
  EXPECT_GT(further->us, 15);
  EXPECT_LT(further->us, 4 * (1 + 10.0 / 3));
  // What several want counts for one of them, the farthest.
  const Demand spread = custom(three, {part(0, 10 * kUs, {1, 2})});
  const auto of_one = found_prices(three, spread, 12);
  ASSERT_TRUE(of_one);
  EXPECT_EQ(std::get<MessagePricesCertificate>(of_one->certificate).gpu, GpuId{2});
  EXPECT_NEAR(of_one->us, further->us, 0.05);
  // Not where no message costs.
  Fabric fabric(2);
  fabric.link(0, 1, 1, 1);
  EXPECT_FALSE(found_prices(fabric.build(), custom(fabric.build(), {part(0, 10 * kUs, {1})}), 1));
}

}  // namespace
}  // namespace rondo::test_message_prices
