#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "by_hand.hpp"
#include "rondo/core/transfers.hpp"

/// Transfers of three or four GPUs; unless said otherwise links have 1 GB/s and 1 us, and a chunk takes 1 us.
namespace rondo::test_transfers {
namespace {

/// (source, destination, start, arrival, first send, last send, cause), one a delivery.
using Rows = std::vector<std::tuple<int, int, double, double, int, int, int>>;

Rows rows(const Transfers& transfers) {
  Rows rows;
  for (const Delivery& d : transfers.deliveries) {
    rows.emplace_back(d.src.value, d.dst.value, d.start_us, d.arrival_us, d.first_send, d.last_send, d.cause);
  }
  return rows;
}

/// GPUs 0, 1 and 2 around switch 3: link g leads from GPU g to the switch, link 3 + g back.
Topology star(const Node& hub) {
  TopologyData data;
  data.nodes = {{}, {}, {}, hub};
  for (int g = 0; g < 3; ++g) data.links.push_back({NodeId{g}, NodeId{3}, 1, 1});
  for (int g = 0; g < 3; ++g) data.links.push_back({NodeId{3}, NodeId{g}, 1, 1});
  return Topology(std::move(data));
}
const Node kCutThrough{.kind = NodeKind::switch_};
const Node kStoreAndForward{
    .kind = NodeKind::switch_, .forwarding = Forwarding::store_and_forward, .buffer_bytes = kUs};

TEST(Transfers, GoThroughASwitchAndOnFromTheGpuThatTheyReach) {
  const Topology topology = star(kCutThrough);
  const Demand demand = custom(topology, {part(0, kUs, {1, 2})});
  // 0 -> switch -> 1, there at 3, and on in the same way to 2.
  const std::vector<Send> sends = {send(0, 0, 0, 1, 2), send(0, 4, 1, 2, 3), send(0, 1, 3, 4, 5),
                                   send(0, 5, 4, 5, 6)};
  ASSERT_TRUE(replay(topology, demand, sends).valid());
  const Transfers transfers = transfers_of(topology, demand, sends);
  EXPECT_EQ(transfers.continued, (std::vector<int>{-1, 0, -1, 2}));
  EXPECT_EQ(rows(transfers), (Rows{{0, 1, 0, 3, 0, 1, -1}, {1, 2, 3, 6, 2, 3, 0}}));
}

TEST(Transfers, HaveADeliveryForEachGpuThatASwitchCopiesTo) {
  const Topology topology = star(kCutThrough);
  const Demand demand = custom(topology, {part(0, kUs, {1, 2})});
  const std::vector<Send> sends = {send(0, 5, 1, 2, 3), send(0, 0, 0, 1, 2), send(0, 4, 1, 2, 3)};
  ASSERT_TRUE(replay(topology, demand, sends).valid());
  const Transfers transfers = transfers_of(topology, demand, sends);
  EXPECT_EQ(transfers.continued, (std::vector<int>{1, -1, 1}));
  EXPECT_EQ(rows(transfers), (Rows{{0, 2, 0, 3, 1, 0, -1}, {0, 1, 0, 3, 1, 2, -1}}));
}

TEST(Transfers, MayWaitInAStoreAndForwardSwitch) {
  const Topology topology = star(kStoreAndForward);
  const Demand demand = custom(topology, {part(0, kUs, {1, 2})});
  const std::vector<Send> sends = {send(0, 0, 0, 1, 2), send(0, 4, 2, 3, 4), send(0, 5, 5, 6, 7)};
  ASSERT_TRUE(replay(topology, demand, sends).valid());
  EXPECT_EQ(rows(transfers_of(topology, demand, sends)),
            (Rows{{0, 1, 0, 4, 0, 1, -1}, {0, 2, 0, 7, 0, 2, -1}}));
}

TEST(Transfers, ContinueTheArrivalThatNothingElseContinues) {
  // GPUs 0 and 1 have the chunk; it enters the switch at 2 and at 3 and leaves at both times.
  const Topology topology = star(kStoreAndForward);
  const Demand demand = custom(topology, {part(0, kUs, {2})});
  const std::vector<Send> sends = {send(0, 0, 0, 1, 2), send(0, 1, 1, 2, 3), send(0, 5, 2, 3, 4),
                                   send(0, 5, 3, 4, 5)};
  EXPECT_EQ(transfers_of(topology, demand, sends).continued, (std::vector<int>{-1, -1, 0, 1}));
  // Were both there, each would go on.
  const std::vector<Send> together = {send(0, 0, 0, 1, 2), send(0, 1, 0, 1, 2), send(0, 4, 2, 3, 4),
                                      send(0, 5, 2, 3, 4)};
  EXPECT_EQ(transfers_of(topology, demand, together).continued, (std::vector<int>{-1, -1, 0, 1}));
}

TEST(Transfers, GoOnAtTheirRateThroughACutThroughSwitch) {
  // The chunk enters from 0 at 1 GB/s and from 1 at 0.5 GB/s at the same instant, and leaves at both rates.
  Fabric fabric(4);
  const int hub = fabric.cut_through(false);
  const int from0 = fabric.link(0, hub, 1), from1 = fabric.link(1, hub, 0.5);
  const int to2 = fabric.link(hub, 2, 0.5), to3 = fabric.link(hub, 3, 1);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, kUs, {2, 3})});
  const std::vector<Send> sends = {send(0, from0, 4, 5), send(0, from1, 4, 6), send(0, to2, 4, 6),
                                   send(0, to3, 4, 5)};
  EXPECT_EQ(transfers_of(topology, demand, sends).continued, (std::vector<int>{-1, -1, 1, 0}));
}

// Without latency all five sends start at once. What comes from GPU 1 over two switches goes on to GPU 3,
// though what comes from GPU 0 is known earlier: the second switch does not copy.
TEST(Transfers, EachGoOnThroughASwitchThatTheyReachAtOneInstant) {
  Fabric fabric(4);
  const int first = fabric.cut_through();
  const int second = fabric.cut_through(false);
  fabric.link(0, second);
  fabric.link(second, 2);
  fabric.link(second, 3);
  fabric.link(1, first);
  fabric.link(first, second);
  const Topology topology = fabric.build();
  Contribution both = part(0, kUs, {2, 3});
  both.sources = gpus({0, 1});
  const Demand demand = custom(topology, {both});
  std::vector<Send> sends;
  for (int link = 0; link < 5; ++link) sends.push_back(send(0, link, 0, 1, 1));
  ASSERT_TRUE(replay(topology, demand, sends).valid());
  const Transfers transfers = transfers_of(topology, demand, sends);
  EXPECT_EQ(transfers.continued, (std::vector<int>{-1, 0, 4, -1, 3}));
  EXPECT_EQ(rows(transfers), (Rows{{0, 2, 0, 1, 0, 1, -1}, {1, 3, 0, 1, 3, 2, -1}}));
}

TEST(Transfers, GoOverALinkBesideEachOtherButNotTwice) {
  // 0 and 1 have the chunk, and the link from the first switch to the second one carries it twice at half its
  // rate; GPU 4 gets it from either.
  Fabric fabric(5);
  const int first = fabric.cut_through();
  const int second = fabric.cut_through();
  fabric.link(0, first, 1);
  fabric.link(1, first, 1);
  fabric.link(first, 4, 1);
  fabric.link(first, second, 2);
  fabric.link(second, 2, 1);
  fabric.link(second, 3, 1);
  const Topology topology = fabric.build();
  Contribution both = part(0, kUs, {2, 3, 4});
  both.sources = gpus({0, 1});
  const Demand demand = custom(topology, {both});
  std::vector<Send> sends;
  for (const int link : {0, 1, 3, 2, 3, 4, 5}) sends.push_back(send(0, link, 0, 1, 1));
  ASSERT_TRUE(replay(topology, demand, sends).valid());
  const std::vector<int> continued = transfers_of(topology, demand, sends).continued;
  EXPECT_NE(continued[2], continued[4]);
  number_transfers(topology, demand, sends);
  EXPECT_TRUE(replay(topology, demand, sends).valid());
}

TEST(Transfers, OfWhatContinuesNothingAreNone) {
  const Topology topology = star(kCutThrough);
  const Demand demand = custom(topology, {part(0, kUs, {1})});
  const Transfers late =
      transfers_of(topology, demand, std::vector{send(0, 0, 0, 1, 2), send(0, 4, 2, 3, 4)});
  EXPECT_EQ(late.continued, (std::vector<int>{-1, -1}));
  EXPECT_TRUE(late.deliveries.empty());
}

/// Links 0: 0 -> 1, 1: 0 -> 2, 2: 2 -> 1, 3: 1 -> 3.
Topology diamond() {
  Fabric fabric(4);
  for (const auto& [src, dst] : {std::pair{0, 1}, {0, 2}, {2, 1}, {1, 3}}) fabric.link(src, dst);
  return fabric.build();
}

TEST(Causes, AreTheFirstArrivals) {
  const Topology topology = diamond();
  const Demand demand = custom(topology, {part(0, kUs, {3})});
  // 1 has the chunk over 2 at 2 and once more, directly, at 3; it sends it on at 4.
  std::vector<Send> sends = {send(0, 1, 0, 1), send(0, 2, 1, 2), send(0, 0, 2, 3), send(0, 3, 4, 5)};
  EXPECT_EQ(
      rows(transfers_of(topology, demand, sends)),
      (Rows{{0, 2, 0, 1, 0, 0, -1}, {2, 1, 1, 2, 1, 1, 0}, {0, 1, 2, 3, 2, 2, -1}, {1, 3, 4, 5, 3, 3, 1}}));
  // Sent on at 1.5 it rests on nothing.
  sends[3] = send(0, 3, 1.5, 2.5);
  EXPECT_EQ(transfers_of(topology, demand, sends).deliveries[2].cause, -1);
}

TEST(Causes, LeadBackToTheOriginHoweverShortTransfersAre) {
  // 1 and 2 exchange the chunk within the tolerance, a little before it comes from 0.
  Fabric fabric(3);
  for (const auto& [src, dst] : {std::pair{0, 1}, {1, 2}, {2, 1}}) fabric.link(src, dst, 1e7);
  const Topology topology = fabric.build();
  const Demand demand = custom(topology, {part(0, 1, {1, 2})});
  const double byte = 1e-10;
  const std::vector<Send> sends = {send(0, 0, 5, 5 + byte), send(0, 1, 5 - 3 * byte, 5 - 2 * byte),
                                   send(0, 2, 5 - 2 * byte, 5 - byte)};
  const std::vector<Delivery> deliveries = transfers_of(topology, demand, sends).deliveries;
  ASSERT_EQ(deliveries.size(), 3U);  // by start: 1 -> 2, 2 -> 1, 0 -> 1
  EXPECT_EQ(deliveries[0].cause, 2);
  EXPECT_EQ(deliveries[1].cause, 0);
  EXPECT_EQ(deliveries[2].cause, -1);
}

/// The sum of what GPUs 0 to `sources` - 1 have, for `destinations`.
Demand sum_of(int gpus, int sources, const std::vector<int>& destinations) {
  Contribution sum{.origin = GpuId{0}, .bytes = kUs, .reduce = true};
  for (int g = 0; g < sources; ++g) sum.sources.emplace_back(g);
  for (const int g : destinations) sum.destinations.emplace_back(g);
  return Demand(Collective::custom, kUs, static_cast<std::size_t>(gpus), {sum}, 1);
}

Send with(SendOp op, Send send) {
  send.op = op;
  return send;
}

/// (cause, before), one a delivery.
using Chains = std::vector<std::pair<int, int>>;
Chains chains(const std::vector<Delivery>& deliveries) {
  Chains chains;
  for (const Delivery& d : deliveries) chains.emplace_back(d.cause, d.before);
  return chains;
}

TEST(Sums, RestOnAllArrivalsThatTheyInclude) {
  // Links 0: 0 -> 2, 1: 1 -> 2, 2: 2 -> 3, 3: 3 -> 2. The sum of 0, 1 and 2 goes to 3, and 3 hands it back.
  Fabric fabric(4);
  for (const auto& [src, dst] : {std::pair{0, 2}, {1, 2}, {2, 3}, {3, 2}}) fabric.link(src, dst);
  const Topology topology = fabric.build();
  const Demand demand = sum_of(4, 3, {2, 3});
  const std::vector<Send> sends = {
      with(SendOp::reduce, send(0, 0, 0, 1)), with(SendOp::reduce, send(0, 1, 1, 2)),
      with(SendOp::reduce, send(0, 2, 2, 3)), with(SendOp::copy, send(0, 3, 3, 4))};
  const std::vector<Delivery> deliveries = transfers_of(topology, demand, sends).deliveries;
  // What 3 hands back is no news to 2.
  EXPECT_EQ(chains(deliveries), (Chains{{-1, -1}, {-1, 0}, {1, -1}, {2, -1}}));
  EXPECT_EQ(first_arrivals(demand, deliveries)(ChunkId{0}, GpuId{2}), 1);
  EXPECT_EQ(first_arrivals(demand, deliveries)(ChunkId{0}, GpuId{3}), 2);
  EXPECT_EQ(needed_deliveries(demand, deliveries), (std::vector<char>{1, 1, 1, 0}));
  // Sent at 1, the sum of 0 and 2 does not rest on what arrives from 1.
  std::vector<Send> early = sends;
  early[2] = with(SendOp::reduce, send(0, 2, 1, 2));
  EXPECT_EQ(transfers_of(topology, demand, early).deliveries[2].cause, 0);
}

TEST(Sums, OfPartnersThatExchangeTheirsRestOnWhatCameBefore) {
  Fabric fabric(4);
  std::map<std::pair<int, int>, int> links;
  for (const auto& [a, b] : {std::pair{0, 1}, {2, 3}, {0, 2}, {1, 3}}) {
    links[{a, b}] = fabric.link(a, b);
    links[{b, a}] = fabric.link(b, a);
  }
  const Topology topology = fabric.build();
  const Demand demand = sum_of(4, 4, {0, 1, 2, 3});
  std::vector<Send> sends;
  for (const int round : {0, 1}) {
    for (int g = 0; g < 4; ++g) {
      const int partner = g ^ (1 << round);
      sends.push_back(with(SendOp::reduce, send(0, links.at({g, partner}), round, round + 1)));
    }
  }
  // Delivery g goes from GPU g to its partner.
  const std::vector<Delivery> deliveries = transfers_of(topology, demand, sends).deliveries;
  EXPECT_EQ(chains(deliveries),
            (Chains{{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {1, 3}, {0, 2}, {3, 1}, {2, 0}}));
  EXPECT_EQ(first_arrivals(demand, deliveries)(ChunkId{0}, GpuId{0}), 6);
  EXPECT_EQ(needed_deliveries(demand, deliveries), std::vector<char>(8, 1));
  EXPECT_EQ(pruned(topology, demand, sends).size(), 8U);
}

TEST(Sums, ThatASwitchAddsComeFromEveryGpuThatGives) {
  Node adds = kCutThrough;
  adds.reduce = true;
  const Topology topology = star(adds);
  const Demand demand = sum_of(3, 3, {2});
  std::vector<Send> sends = {send(0, 0, 0, 1, 2), send(0, 1, 0, 1, 2), send(0, 5, 1, 2, 3)};
  for (Send& one : sends) {
    one.op = SendOp::reduce;
    one.transfer = 7;
  }
  const Transfers transfers = transfers_of(topology, demand, sends);
  EXPECT_EQ(transfers.continued, (std::vector<int>{-1, -1, 0}));
  EXPECT_EQ(transfers.added_into, (std::vector<int>{-1, 2, -1}));
  EXPECT_EQ(rows(transfers), (Rows{{0, 2, 0, 3, 0, 2, -1}, {1, 2, 0, 3, 1, 2, -1}}));
  EXPECT_EQ(pruned(topology, demand, sends).size(), 3U);
}

// Of each GPU's deliveries the first one takes the place of what is there, the others are added to it.
TEST(Sums, ThatASwitchAddsAndCopiesComeFromAllToAll) {
  Node adds = kCutThrough;
  adds.reduce = true;
  const Topology topology = star(adds);
  const Demand demand = sum_of(3, 3, {0, 1, 2});
  std::vector<Send> sends;
  for (int up = 0; up < 3; ++up) sends.push_back(with(SendOp::reduce, send(0, up, 0, 1, 2)));
  for (int down = 3; down < 6; ++down) sends.push_back(send(0, down, 1, 2, 3));
  for (Send& one : sends) one.transfer = 7;
  const Transfers transfers = transfers_of(topology, demand, sends);
  EXPECT_EQ(transfers.continued, (std::vector<int>{-1, -1, -1, 0, 0, 0}));
  std::map<std::pair<int, int>, int> from_to;
  std::map<int, int> copies;
  for (const Delivery& delivery : transfers.deliveries) {
    ++from_to[{delivery.src.value, delivery.dst.value}];
    copies[delivery.dst.value] += delivery.op == SendOp::copy ? 1 : 0;
  }
  EXPECT_EQ(from_to.size(), 9U);
  EXPECT_EQ(copies, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(pruned(topology, demand, sends).size(), 6U);
}

TEST(Pruning, KeepsFirstArrivalsAtDestinationsAndTheirCauses) {
  const Topology topology = diamond();
  const std::vector<Send> sends = {send(0, 1, 0, 1), send(0, 2, 1, 2), send(0, 0, 2, 3), send(0, 3, 4, 5)};
  const auto links = [&](const std::vector<int>& destinations) {
    std::vector<int> kept_links;
    for (const Send& kept : pruned(topology, custom(topology, {part(0, kUs, destinations)}), sends))
      kept_links.push_back(kept.link.value);
    return kept_links;
  };
  EXPECT_EQ(links({3}), (std::vector<int>{1, 2, 3}));  // the second copy at 1 serves nothing
  EXPECT_EQ(links({1}), (std::vector<int>{1, 2}));
  EXPECT_EQ(links({2}), (std::vector<int>{1}));
}

TEST(Pruning, DropsBranchesOfATransfer) {
  const Topology topology = star(kCutThrough);
  const Demand demand = custom(topology, {part(0, kUs, {1})});
  const std::vector<Send> kept =
      pruned(topology, demand, std::vector{send(0, 0, 0, 1, 2), send(0, 4, 1, 2, 3), send(0, 5, 1, 2, 3)});
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[1].link, LinkId{4});
}

TEST(Pruning, RenumbersCauses) {
  const auto to = [](int gpu, double arrival_us, int cause) {
    return Delivery{ChunkId{0}, GpuId{0}, GpuId{gpu}, 0, arrival_us, -1, -1, cause};
  };
  const Demand demand(Collective::custom, 1, 4, {part(0, 1, {3})}, 1);
  std::vector<Delivery> deliveries = {to(2, 1, -1), to(1, 2, -1), to(3, 3, 1), to(3, 4, 0)};
  EXPECT_EQ(first_arrivals(demand, deliveries)(ChunkId{0}, GpuId{3}), 2);
  keep_marked(deliveries, needed_deliveries(demand, deliveries));
  ASSERT_EQ(deliveries.size(), 2U);
  EXPECT_EQ(deliveries[0].dst, GpuId{1});
  EXPECT_EQ(deliveries[1].dst, GpuId{3});
  EXPECT_EQ(deliveries[1].cause, 0);
}

/// Two transfers that meet in a switch at one instant, both as slow as the slowest of their links: one enters
/// over a fast link and leaves over a slow one, the other the other way round. A third GPU may have a copy.
TEST(NumberedTransfers, GoByTheirSlowestLinkWhereMessagesCost) {
  for (const bool copies : {false, true}) {
    TopologyData data;
    data.nodes = {{}, {}, {}, {}, {}, kCutThrough};
    const std::vector<double> GBps = {2, 1, 1, 2, 2};
    for (const int g : {0, 1}) data.links.push_back({NodeId{g}, NodeId{5}, GBps[index(g)], 1});
    for (const int g : {2, 3, 4}) data.links.push_back({NodeId{5}, NodeId{g}, GBps[index(g)], 1});
    for (Link& link : data.links) link.message_us = 1;
    const Topology topology(std::move(data));
    Contribution both = part(0, kUs, copies ? std::vector{2, 3, 4} : std::vector{2, 3});
    both.sources = {GpuId{0}, GpuId{1}};
    const Demand demand = custom(topology, {both});
    std::vector<Send> all = {send(0, 0, 0, 2, 3), send(0, 1, 0, 2, 3), send(0, 2, 1, 3, 4),
                             send(0, 3, 1, 3, 4)};
    if (copies) all.push_back(send(0, 4, 1, 3, 4));
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      std::vector<Send> sends;
      for (const std::size_t s : order) sends.push_back(all[s]);
      number_transfers(topology, demand, sends);
      const ReplayResult replayed = replay(topology, demand, sends);
      ASSERT_TRUE(replayed.valid()) << *replayed.violation;
      ASSERT_DOUBLE_EQ(replayed.finish_us, 4);
    } while (std::ranges::next_permutation(order).found);
  }
}

}  // namespace
}  // namespace rondo::test_transfers
