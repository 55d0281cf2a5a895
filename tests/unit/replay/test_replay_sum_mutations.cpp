#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "by_hand.hpp"
#include "judged_schedules.hpp"
#include "rondo/core/random.hpp"

/// Sums over trees of links and through switches that add: every single change of a valid schedule that adds
/// something twice, loses it or does not wait for it is found.
namespace rondo::test_replay_sum_mutations {
namespace {

struct SumScenario {
  TopologyData fabric;
  std::vector<Contribution> sums;
  std::vector<Send> sends;
};

/// Per chunk a random tree of GPUs: sums come together along it at its root, and spread from there.
class TreeSums {
 public:
  explicit TreeSums(Random& random) : random_(random) {}

  SumScenario make() {
    made_ = {};
    const int gpus = 3 + static_cast<int>(random_.below(4));
    made_.fabric.nodes.resize(static_cast<std::size_t>(gpus));
    start_us_ = 0;
    for (int c = 0; c < 2; ++c) add_chunk(c, gpus);
    return std::move(made_);
  }

 private:
  void add_chunk(int c, int gpus) {
    // The root is order[0]; parent_[k] is the position of the parent of order[k].
    std::vector<int> order(static_cast<std::size_t>(gpus));
    std::iota(order.begin(), order.end(), 0);
    random_.shuffle(std::span(order));
    std::vector<std::size_t> parent(order.size(), 0);
    for (std::size_t k = 1; k < order.size(); ++k) parent[k] = random_.below(k);
    std::vector<char> gives(order.size(), 0);
    std::vector<char> wants(order.size(), 0);
    for (std::size_t k = 0; k < order.size(); ++k) {
      gives[k] = random_.below(3) > 0;
      wants[k] = random_.below(2) == 0;
    }
    gives[0] = gives.back() = 1;
    wants[random_.below(order.size())] = 1;
    Contribution sum = sum_of(named(order, gives), kUs, named(order, wants));
    std::ranges::sort(sum.sources);
    sum.origin = sum.sources.front();
    made_.sums.push_back(sum);

    std::vector<char> gives_below = gives;
    std::vector<char> wants_below = wants;
    for (std::size_t k = order.size(); k-- > 1;) {
      gives_below[parent[k]] |= gives_below[k];
      wants_below[parent[k]] |= wants_below[k];
    }
    std::vector<double> ready_us(order.size(), start_us_);
    for (std::size_t k = order.size(); k-- > 1;) {
      if (gives_below[k]) move(c, order, k, parent[k], SendOp::reduce, ready_us);
    }
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (wants_below[k]) move(c, order, parent[k], k, SendOp::copy, ready_us);
    }
    start_us_ = *std::ranges::max_element(ready_us) + 1;
  }

  static std::vector<int> named(const std::vector<int>& order, const std::vector<char>& flags) {
    std::vector<int> result;
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (flags[k]) result.push_back(order[k]);
    }
    return result;
  }

  void move(int c, const std::vector<int>& order, std::size_t from, std::size_t to, SendOp op,
            std::vector<double>& ready_us) {
    const double latency_us = random_.below(2) == 0 ? 0 : random_.unit();
    made_.fabric.links.push_back({NodeId{order[from]}, NodeId{order[to]}, 1, latency_us});
    const double start = ready_us[from] + (random_.below(2) == 0 ? 0 : random_.unit());
    Send s =
        send(c, static_cast<int>(made_.fabric.links.size()) - 1, start, start + 1, start + 1 + latency_us);
    s.op = op;
    made_.sends.push_back(s);
    ready_us[to] = std::max(ready_us[to], s.arrival_us);
  }

  Random& random_;
  SumScenario made_;
  double start_us_ = 0;
};

/// All GPUs but one send through a switch that adds, to that one; it spreads the sum through the same switch.
SumScenario switched_sum(Random& random, Forwarding forwarding) {
  SumScenario made;
  const int gpus = 3 + static_cast<int>(random.below(3));
  made.fabric.nodes.resize(static_cast<std::size_t>(gpus));
  made.fabric.nodes.push_back(
      {.kind = NodeKind::switch_, .reduce = true, .forwarding = forwarding, .buffer_bytes = 100 * kUs});
  std::vector<int> all(static_cast<std::size_t>(gpus));
  std::iota(all.begin(), all.end(), 0);
  made.sums.push_back(sum_of(all, kUs, all));
  const int root = static_cast<int>(random.below(all.size()));
  std::vector<double> latency_us;
  for (int l = 0; l < 2 * gpus; ++l) {
    latency_us.push_back(random.below(2) == 0 ? 0.5 : random.unit());
    const NodeId gpu{l % gpus};
    const NodeId sw{gpus};
    made.fabric.links.push_back({l < gpus ? gpu : sw, l < gpus ? sw : gpu, 1, latency_us.back()});
  }
  const auto move = [&](int link, double start, SendOp op, int transfer) {
    const double latency = latency_us[static_cast<std::size_t>(link)];
    Send s = send(0, link, start, start + 1, start + 1 + latency);
    s.op = op;
    if (forwarding == Forwarding::cut_through) s.transfer = transfer;
    made.sends.push_back(s);
    return forwarding == Forwarding::cut_through ? start + latency : s.arrival_us;
  };
  double passes_us = 1;  // all at one instant, or the last of them
  for (int g = 0; g < gpus; ++g) {
    if (g == root) continue;
    const double early = forwarding == Forwarding::cut_through ? 0 : 3 * random.unit();
    const double start = 4 - early - latency_us[static_cast<std::size_t>(g)];
    passes_us = std::max(passes_us, move(g, start, SendOp::reduce, 0));
  }
  move(gpus + root, passes_us, SendOp::reduce, 0);
  const double spread_us = move(root, made.sends.back().arrival_us + random.unit(), SendOp::copy, 1);
  for (int g = 0; g < gpus; ++g) {
    if (g != root) move(gpus + g, spread_us, SendOp::copy, 1);
  }
  return made;
}

ReplayResult judge(const SumScenario& scenario) {
  const Topology topology(scenario.fabric);
  return judged(topology, custom(topology, scenario.sums), scenario.sends);
}

bool is_source(const SumScenario& scenario, ChunkId chunk, NodeId node) {
  const auto& sources = scenario.sums[chunk.index()].sources;
  return std::ranges::find(sources, GpuId{node.value}) != sources.end();
}

const Link& link_of(const SumScenario& scenario, const Send& send) {
  return scenario.fabric.links[send.link.index()];
}

void move_by(Send& send, double later_us) {
  send.start_us += later_us;
  send.end_us += later_us;
  send.arrival_us += later_us;
}

double noticeable_us_of(Random& random) {
  return 1e-3 + random.unit();
}

using Generate = std::function<SumScenario(Random&)>;
/// Of one send; false where it offers nothing to change.
using SumChange = std::function<bool(SumScenario&, std::size_t s, Random&)>;

const Generate kTrees = [](Random& random) { return TreeSums(random).make(); };
const Generate kAddingSwitch = [](Random& random) { return switched_sum(random, Forwarding::cut_through); };
const Generate kAddingStorage = [](Random& random) {
  return switched_sum(random, Forwarding::store_and_forward);
};

/// A thousand changes that are refused.
void expect_refused(const Generate& generate, const SumChange& change) {
  constexpr int kWanted = 1000;
  Random random(77);
  int refused = 0;
  for (int tried = 0; refused < kWanted; ++tried) {
    ASSERT_LT(tried, 50 * kWanted) << "only " << refused;
    SumScenario scenario = generate(random);
    const ReplayResult valid = judge(scenario);
    ASSERT_TRUE(valid.valid()) << "scenario " << tried << ": " << *valid.violation;
    if (!change(scenario, random.below(scenario.sends.size()), random)) continue;
    const ReplayResult changed = judge(scenario);
    ASSERT_FALSE(changed.valid()) << "scenario " << tried;
    ++refused;
    random.shuffle(std::span(scenario.sends));
    ASSERT_EQ(judge(scenario).violation, changed.violation);
  }
}

TEST(SumMutations, ACopyForAnAdditionAndBack) {
  // Where a GPU has data of its own a copy on the way to the root lacks them, and the sum contains them.
  for (const Generate& generate : {kTrees, kAddingSwitch, kAddingStorage}) {
    expect_refused(generate, [](SumScenario& scenario, std::size_t s, Random&) {
      Send& send = scenario.sends[s];
      if (!is_source(scenario, send.chunk, link_of(scenario, send).dst)) return false;
      send.op = send.op == SendOp::copy ? SendOp::reduce : SendOp::copy;
      return true;
    });
  }
}

TEST(SumMutations, ASendIsLeftOut) {
  for (const Generate& generate : {kTrees, kAddingSwitch, kAddingStorage}) {
    expect_refused(generate, [](SumScenario& scenario, std::size_t s, Random&) {
      scenario.sends.erase(scenario.sends.begin() + static_cast<std::ptrdiff_t>(s));
      return true;
    });
  }
}

TEST(SumMutations, AnAdditionIsRepeated) {
  expect_refused(kTrees, [](SumScenario& scenario, std::size_t s, Random& random) {
    Send again = scenario.sends[s];
    if (again.op != SendOp::reduce) return false;
    move_by(again, 1 + 10 * random.unit());
    scenario.sends.push_back(again);
    return true;
  });
}

TEST(SumMutations, ASendDoesNotWait) {
  expect_refused(kTrees, [](SumScenario& scenario, std::size_t s, Random& random) {
    Send& send = scenario.sends[s];
    double last_us = -1;
    for (const Send& other : scenario.sends) {
      const bool is_cause = other.chunk == send.chunk && other.arrival_us <= send.start_us + 1e-9 &&
                            link_of(scenario, other).dst == link_of(scenario, send).src;
      if (is_cause) last_us = std::max(last_us, other.arrival_us);
    }
    move_by(send, last_us - noticeable_us_of(random) - send.start_us);
    return last_us >= 0 && send.start_us >= 0;
  });
}

TEST(SumMutations, ASendCarriesAnotherChunk) {
  expect_refused(kTrees, [](SumScenario& scenario, std::size_t s, Random&) {
    scenario.sends[s].chunk = ChunkId{1 - scenario.sends[s].chunk.value};
    return true;
  });
}

TEST(SumMutations, ASwitchMayNotAdd) {
  for (const Generate& generate : {kAddingSwitch, kAddingStorage}) {
    expect_refused(generate, [](SumScenario& scenario, std::size_t, Random&) {
      scenario.fabric.nodes.back().reduce = false;
      return true;
    });
  }
}

TEST(SumMutations, APartEntersASwitchAlone) {
  // By another instant, another number or none, or as a copy.
  expect_refused(kAddingSwitch, [](SumScenario& scenario, std::size_t s, Random& random) {
    Send& send = scenario.sends[s];
    if (send.transfer != 0) return false;
    switch (random.below(4)) {
      case 0:
        move_by(send, (random.below(2) == 0 ? 1 : -1) * noticeable_us_of(random));
        break;
      case 1:
        send.transfer = 5;
        break;
      case 2:
        send.transfer = kNoTransfer;
        break;
      default:
        send.op = SendOp::copy;
        break;
    }
    return true;
  });
}

TEST(SumMutations, APartComesTooLateToAStoringSwitch) {
  expect_refused(kAddingStorage, [](SumScenario& scenario, std::size_t s, Random& random) {
    Send& send = scenario.sends[s];
    const int gpus = static_cast<int>(scenario.fabric.nodes.size()) - 1;
    if (send.link.value >= gpus || send.op != SendOp::reduce) return false;
    move_by(send, 4 - send.arrival_us + 1 + noticeable_us_of(random));
    return true;
  });
}

TEST(SumMutations, AStoredSumDoesNotFit) {
  expect_refused(kAddingStorage, [](SumScenario& scenario, std::size_t, Random& random) {
    double first_us = 1e9;
    double last_us = 0;
    const int gpus = static_cast<int>(scenario.fabric.nodes.size()) - 1;
    for (const Send& s : scenario.sends) {
      if (s.link.value >= gpus || s.op != SendOp::reduce) continue;
      first_us = std::min(first_us, s.arrival_us);
      last_us = std::max(last_us, s.arrival_us);
    }
    scenario.fabric.nodes.back().buffer_bytes = 0.999 * random.unit() * kUs;
    return last_us > first_us + 1e-3;
  });
}

}  // namespace
}  // namespace rondo::test_replay_sum_mutations
