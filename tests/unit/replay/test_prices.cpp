#include <algorithm>
#include <map>

#include "certificates.hpp"
#include "rondo/bounds/prices.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/subfabric.hpp"
#include "rondo/model/linear_model.hpp"
#include "rondo/solvers/solvers.hpp"
#include "unrolled_network.hpp"

namespace rondo::test_prices {
namespace {

std::optional<LowerBound> found_prices(const Topology& topology, const Demand& demand, double least_us) {
  return find_prices(topology, demand, find_symmetry(topology, demand), make_clp_column_master, least_us);
}

/// Every byte waits for no one else's: one hop at 1 GB/s and 1 us to the next of three, in a circle.
Topology circle() {
  Fabric fabric(3);
  for (int g = 0; g < 3; ++g) fabric.link(g, (g + 1) % 3, 1, 1);
  return fabric.build();
}

/// To those two hops away, `us` of data each.
Demand two_hops(const Topology& topology, double us, double ready_us = 0) {
  return custom(topology, {part(0, us * kUs, {2}, ready_us), part(1, us * kUs, {0}, ready_us),
                           part(2, us * kUs, {1}, ready_us)});
}

/// First hops before T - 2, second ones from 1 on.
const PricesCertificate kTwoHops{{0, 0.5, 1, 1.5}, 2.5, {0, 1, 2, 6, 7, 8}, {1, 1, 1, 1, 1, 1}};

TEST(Prices, ProveWhenLinksCannotEarnWhatBytesPay) {
  const Topology topology = circle();
  EXPECT_EQ(sound_bound_of(topology, two_hops(topology, 0.5), kTwoHops), 2.5);
  EXPECT_EQ(sound_bound_of(topology, two_hops(topology, 0.6), kTwoHops), 2.5);
  expect_refused(topology, two_hops(topology, 0.499), kTwoHops, "have to pay");
  // Ready 0.25 us later all is 0.25 us later, or pays nothing.
  PricesCertificate late{{0, 0.25, 0.75, 1.25, 1.75}, 2.75, {3, 4, 5, 9, 10, 11}, {1, 1, 1, 1, 1, 1}};
  EXPECT_EQ(sound_bound_of(topology, two_hops(topology, 0.5, 0.25), late), 2.75);
  expect_refused(topology, two_hops(topology, 0.5, 0.2), late, "have to pay");
}

TEST(Prices, AreRefusedWhereTheyAreNone) {
  const Topology topology = circle();
  const Demand demand = two_hops(topology, 0.5);
  const auto refuse = [&](const auto& change, const std::string& word) {
    PricesCertificate prices = kTwoHops;
    change(prices);
    expect_refused(topology, demand, prices, word);
  };
  refuse([](auto& p) { p.from_us.clear(); }, "periods begin");
  refuse([](auto& p) { p.from_us[1] = 1; }, "periods begin");
  refuse([](auto& p) { p.from_us[0] = -1; }, "periods begin");
  refuse([](auto& p) { p.until_us = 1.5; }, "periods begin");
  refuse([](auto& p) { p.until_us = INFINITY; }, "periods begin");
  refuse([](auto& p) { p.place[1] = 0; }, "place 0");
  refuse([](auto& p) { p.place.back() = 12; }, "place 12");
  refuse([](auto& p) { p.place.front() = -1; }, "place -1");
  refuse([](auto& p) { p.price.pop_back(); }, "5 prices for 6 places");
  refuse([](auto& p) { p.price[0] = -1; }, "price is -1");
  refuse([](auto& p) { p.price[0] = NAN; }, "price is nan");
  refuse([](auto& p) { p.from_us[2] = 1.1; }, "have to pay");
  expect_refused(topology, make_demand(Collective::allgather, 4e6, 3, 1), kTwoHops, "one destination each");
  Fabric changing(3);
  for (int g = 0; g < 3; ++g) changing.changing_link(g, (g + 1) % 3, {{0, 1}, {1, 0}, {2, 1}}, 1);
  expect_refused(changing.build(), demand, kTwoHops, "bandwidth changes");
}

TEST(Prices, OfAGroupWithoutRelaysAreThoseOfItsPart) {
  // GPU 3 has links, the first ones, and a share of a group, which nothing may use.
  Fabric fabric(4);
  const int aside = fabric.link(3, 0, 1, 1);
  fabric.link(0, 3, 1, 1);
  std::vector<int> around;
  for (int g = 0; g < 3; ++g) around.push_back(fabric.link(g, (g + 1) % 3, 1, 1));
  fabric.share({aside}, 1);
  fabric.share({aside, around[0]}, 1);
  const Topology topology = fabric.build();
  const Demand three = two_hops(circle(), 0.5);
  const Demand demand(Collective::custom, three.size_bytes(), 4, three.contributions(), 1,
                      {.group = gpus({0, 1, 2}), .counts = {}, .relays = false});
  ASSERT_TRUE(demand.forbids_relays());
  // Of the first link the group is paid. Rows: 5 links, 2 groups; inside 3 links, 1 group.
  const PricesCertificate whole{kTwoHops.from_us, 2.5, {3, 4, 6, 17, 18, 20}, kTwoHops.price};
  EXPECT_EQ(sound_bound_of(topology, demand, whole), 2.5);
  const Subfabric inside(topology, demand);
  const auto there = std::get<PricesCertificate>(inside.certificate_inside(whole));
  EXPECT_EQ(there.place, (std::vector<std::int32_t>{1, 2, 3, 9, 10, 11}));
  EXPECT_EQ(std::get<PricesCertificate>(inside.certificate_of_whole(there)).place, whole.place);
}

TEST(Prices, AreFoundToTheLastDigit) {
  const Topology topology = circle();
  const auto found = found_prices(topology, two_hops(topology, 0.5), 2);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->us, 2.5, 1e-6);
  EXPECT_EQ(sound_bound_of(topology, two_hops(topology, 0.5), found->certificate), found->us);
  EXPECT_FALSE(found_prices(topology, two_hops(topology, 0.5), 2.5));
  EXPECT_FALSE(found_prices(topology, make_demand(Collective::allgather, 4e6, 3, 1), 1));
}

constexpr int kStepsOfFlow = 2;  ///< in a microsecond

/// How many times what links carry, in half microseconds, a fluid flow takes that serves all within
/// `horizon` of these; more than 1: it does not.
class FlowOverTime {
 public:
  FlowOverTime(const Topology& topology, const Demand& demand, int horizon)
      : topology_(topology), horizon_(horizon), theta_(model_.add_column(0, kInfinity, 1)) {
    std::map<GpuId, std::vector<const Contribution*>> of_origin;
    for (const Contribution& part : demand.contributions()) of_origin[part.origin].push_back(&part);
    add_capacities();
    for (const auto& [origin, parts] : of_origin) add_flow(parts);
  }

  double theta() const {
    const Solution solution = make_clp_solver()->solve(model_, {});
    return solution.status == SolveStatus::optimal ? solution.objective : kInfinity;
  }

 private:
  static double step_us() { return 1.0 / kStepsOfFlow; }

  void add_capacities() {
    const std::size_t rows = topology_.num_links() + topology_.shared_bandwidth().size();
    for (std::size_t i = 0; i < rows * index(horizon_); ++i) {
      const std::size_t row = i % rows;
      const double GBps = row < topology_.num_links()
                              ? topology_.links()[row].bandwidth_GBps
                              : topology_.shared_bandwidth()[row - topology_.num_links()].bandwidth_GBps;
      model_.add_entry(model_.add_row(-kInfinity, 0), theta_, -GBps * kUs * step_us());
    }
    num_rows_ = static_cast<int>(rows);
  }

  void add_flow(const std::vector<const Contribution*>& parts) {
    const auto nodes = static_cast<int>(topology_.num_nodes());
    std::vector<double> balance(index(nodes * horizon_), 0);
    for (const Contribution* part : parts) {
      const int ready = static_cast<int>(part->ready_us * kStepsOfFlow);
      if (ready < horizon_)
        balance[index(ready * nodes) + topology_.node_of(part->origin).index()] += part->bytes;
      balance[index((horizon_ - 1) * nodes) + topology_.node_of(part->destinations.front()).index()] -=
          part->bytes;
    }
    const int first = model_.num_rows();
    for (const double bytes : balance) model_.add_row(bytes, bytes);
    const auto add = [&](std::size_t from, int at, std::size_t to, int then) {
      const int column = model_.add_column(0, kInfinity, 0);
      model_.add_entry(first + at * nodes + static_cast<int>(from), column, 1);
      model_.add_entry(first + then * nodes + static_cast<int>(to), column, -1);
      return column;
    };
    for (int at = 0; at < horizon_; ++at) {
      for (std::size_t n = 0; n < topology_.num_nodes() && at + 1 < horizon_; ++n) add(n, at, n, at + 1);
      for (std::size_t l = 0; l < topology_.num_links(); ++l) add_link(LinkId(l), at, add);
    }
  }

  /// A flow that starts in a step ends before the step in which the next hop may start.
  template <class Add>
  void add_link(LinkId l, int at, const Add& add) {
    const Link& link = topology_.link(l);
    const double message_us = topology_.is_gpu(link.src) ? link.message_us : 0;
    const int leaves = at + static_cast<int>(message_us * kStepsOfFlow);
    const int then = leaves + static_cast<int>(link.latency_us * kStepsOfFlow);
    if (then >= horizon_) return;
    const int column = add(link.src.index(), at, link.dst.index(), then);
    model_.add_entry(leaves * num_rows_ + l.value, column, 1);
    for (std::size_t i = 0; i < topology_.shared_bandwidth().size(); ++i) {
      if (std::ranges::count(topology_.shared_bandwidth()[i].links, l) > 0)
        model_.add_entry(leaves * num_rows_ + static_cast<int>(topology_.num_links() + i), column, 1);
    }
  }

  const Topology& topology_;
  int horizon_;
  LinearModel model_ = {};
  int theta_;
  int num_rows_ = 0;
};

/// The least horizon in which all is served.
double least_us(const Topology& topology, const Demand& demand) {
  int few = 0;
  int many = 1;
  const auto serves = [&](int horizon) {
    return FlowOverTime(topology, demand, horizon).theta() <= 1 + 1e-9;
  };
  while (!serves(many)) few = std::exchange(many, 2 * many);
  while (many - few > 1) {
    const int middle = (few + many) / 2;
    (serves(middle) ? many : few) = middle;
  }
  return 1.0 * many / kStepsOfFlow;
}

Demand random_pairs(const Topology& topology, Random& random) {
  const int gpus = static_cast<int>(topology.num_gpus());
  std::vector<Contribution> parts;
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a == b || random.unit() < 0.3) continue;
      parts.push_back(part(a, (1 + below(random, 6)) * kUs, {b}, random.unit() < 0.2 ? 1 : 0));
    }
  }
  if (parts.empty()) parts.push_back(part(0, kUs, {1}));
  return custom(topology, std::move(parts));
}

PricesCertificate mutated(PricesCertificate prices, Random& random) {
  const auto some = [&](auto& all) -> auto& {
    return all[random.below(all.size())];
  };
  const double by = random.unit() < 0.5 ? 0.5 : 0.01;
  switch (random.below(8)) {
    case 0:
      prices.until_us *= 1 + by;
      break;
    case 1:
      prices.until_us *= 1 - 0.1 * by;
      break;
    case 2:
      some(prices.from_us) += by;
      break;
    case 3:
      some(prices.from_us) -= by;
      break;
    case 4:  // all that begins after a time begins later
      for (const double from_us = some(prices.from_us); double& us : prices.from_us)
        us += us >= from_us ? by : 0;
      prices.until_us += by;
      break;
    case 5:
      some(prices.price) *= random.unit() < 0.5 ? 0 : 2;
      break;
    case 6:
      std::swap(some(prices.price), some(prices.price));
      break;
    default:
      some(prices.place) += random.unit() < 0.5 ? 1 : -1;
  }
  return prices;
}

TEST(PricesMutations, ProveNoMoreThanAFlowOfLeastTime) {
  Random random(11);
  int accepted = 0;
  int refused = 0;
  int near = 0;
  constexpr int kCases = 20;
  for (int i = 0; i < kCases; ++i) {
    const Topology topology = random_topology(random, false);
    const Demand demand = random_pairs(topology, random);
    const double flow_us = least_us(topology, demand);
    const auto found = found_prices(topology, demand, 0.1);
    ASSERT_TRUE(found) << i;
    EXPECT_LE(found->us, flow_us * (1 + 1e-9)) << i;
    // Beyond a step of the flow, what periods lose that are too few.
    if (found->us >= 0.98 * (flow_us - 1.0 / kStepsOfFlow)) ++near;
    for (int k = 0; k < 1000 / kCases; ++k) {
      try {
        const double us = sound_bound_of(topology, demand,
                                         mutated(std::get<PricesCertificate>(found->certificate), random));
        ASSERT_LE(us, flow_us * (1 + 1e-9)) << i;
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data);
        ++refused;
      }
    }
  }
  EXPECT_EQ(accepted + refused, 1000);
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 300);
  EXPECT_GE(near, kCases * 3 / 4);
}

}  // namespace
}  // namespace rondo::test_prices
