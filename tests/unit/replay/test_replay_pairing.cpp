#include <algorithm>
#include <functional>

#include "by_hand.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/units.hpp"

/// Where the rules leave open which arrival an onward send belongs to, the replay agrees with trying all
/// pairings.
namespace rondo::test_replay_pairing {
namespace {

constexpr double kChunk = 10 * kUs;

/// Whether some choice of an entering send for each of `leaving` is right.
/// `candidates(i)` are those for leaving[i]; `right` judges a whole choice, given as parent[send] (-1: none).
bool some_pairing(const std::vector<int>& leaving, std::size_t num_sends,
                  const std::function<std::vector<int>(int)>& candidates,
                  const std::function<bool(const std::vector<int>&)>& right) {
  std::vector<int> parent(num_sends, -1);
  const std::function<bool(std::size_t)> choose = [&](std::size_t i) {
    if (i == leaving.size()) return right(parent);
    for (const int p : candidates(leaving[i])) {
      parent[static_cast<std::size_t>(leaving[i])] = p;
      if (choose(i + 1)) return true;
    }
    return false;
  };
  return choose(0);
}

/// Rules 1-6 hold; delivery (rule 7) is not what these tests are about.
bool obeys_rules(const Topology& topology, const std::vector<Send>& sends, int num_chunks) {
  const Demand demand =
      custom(topology, std::vector<Contribution>(static_cast<std::size_t>(num_chunks), part(0, kChunk, {1})));
  const ReplayResult result = replay(topology, demand, sends);
  return result.valid() || result.violation->starts_with("rule 7");
}

/// Every entering send leaves its switch, once if that cannot multicast.
bool sent_on(const Topology& topology, const std::vector<Send>& sends, const std::vector<int>& parent) {
  for (std::size_t s = 0; s < sends.size(); ++s) {
    const NodeId dst = topology.link(sends[s].link).dst;
    const auto children = std::count(parent.begin(), parent.end(), static_cast<int>(s));
    if (!topology.is_gpu(dst) && (children < 1 || (children > 1 && !topology.node(dst).multicast)))
      return false;
  }
  return true;
}

/// Everything starts at 0 and the latencies are 0: send l over link l, transfers begin at GPU 0.
bool cuts_through(const Topology& topology, const std::vector<Send>& sends) {
  std::vector<int> leaving;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (!topology.is_gpu(topology.links()[s].src)) leaving.push_back(static_cast<int>(s));
  }
  const auto candidates = [&](int s) {
    std::vector<int> result;
    for (const LinkId l : topology.in_links(topology.link(LinkId{s}).src)) result.push_back(l.value);
    return result;
  };
  return some_pairing(leaving, sends.size(), candidates, [&](const std::vector<int>& parent) {
    if (!sent_on(topology, sends, parent)) return false;
    std::vector<double> rate(sends.size(), 1e9);  // of the transfer that begins with this send
    std::vector<std::size_t> root(sends.size());
    for (std::size_t s = 0; s < sends.size(); ++s) {
      root[s] = s;
      for (std::size_t hops = 0; parent[root[s]] >= 0; ++hops) {
        if (hops > sends.size()) return false;  // a circle
        root[s] = static_cast<std::size_t>(parent[root[s]]);
      }
      rate[root[s]] = std::min(rate[root[s]], topology.links()[s].bandwidth_GBps);
    }
    for (std::size_t s = 0; s < sends.size(); ++s) {
      if (!times_equal(sends[s].end_us, transmission_us(kChunk, rate[root[s]]))) return false;
    }
    return true;
  });
}

TEST(ReplayPairing, CutThroughSwitchesAgreeWithTryingAll) {
  Random random(11);
  int valid = 0;
  for (int round = 0; round < 30000; ++round) {
    const int switches = 1 + static_cast<int>(random.below(3));
    Fabric fabric(2);
    for (int s = 0; s < switches; ++s) fabric.cut_through(random.below(2) == 0);
    std::vector<Send> sends;
    const int links = 3 + static_cast<int>(random.below(6));
    const bool mixed_rates = random.below(3) == 0;
    while (static_cast<int>(sends.size()) < links) {
      const auto node = [&] {
        return static_cast<int>(random.below(static_cast<std::size_t>(2 + switches)));
      };
      const int src = node();
      const int dst = node();
      if (src == dst || src == 1 || dst == 0 || (src == 0 && dst == 1)) continue;
      const double end = mixed_rates && random.below(2) == 0 ? 5 : 10;
      sends.push_back(send(0, fabric.link(src, dst, random.below(2) == 0 ? 1 : 2), 0, end));
    }
    const Topology topology = fabric.build();
    const bool expected = cuts_through(topology, sends);
    ASSERT_EQ(obeys_rules(topology, sends, 1), expected) << "round " << round;
    valid += expected;
  }
  EXPECT_GT(valid, 1000);
}

/// GPU 0 -> switch 2 -> GPU 1, each send over a link of its own, times whole multiples of 10 us.
bool stores_and_forwards(const Topology& topology, const std::vector<Send>& sends) {
  std::vector<int> leaving;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (topology.link(sends[s].link).src == NodeId{2}) leaving.push_back(static_cast<int>(s));
  }
  const auto candidates = [&](int s) {
    std::vector<int> result;
    const Send& onward = sends[static_cast<std::size_t>(s)];
    for (std::size_t in = 0; in < sends.size(); ++in) {
      if (topology.link(sends[in].link).dst == NodeId{2} && sends[in].chunk == onward.chunk &&
          sends[in].arrival_us <= onward.start_us) {
        result.push_back(static_cast<int>(in));
      }
    }
    return result;
  };
  return some_pairing(leaving, sends.size(), candidates, [&](const std::vector<int>& parent) {
    if (!sent_on(topology, sends, parent)) return false;
    std::vector<double> last_us(sends.size(), 0);
    for (const int s : leaving) {
      double& last = last_us[static_cast<std::size_t>(parent[static_cast<std::size_t>(s)])];
      last = std::max(last, sends[static_cast<std::size_t>(s)].start_us);
    }
    for (double t = 5; t < 200; t += 10) {
      double bytes = 0;
      for (std::size_t s = 0; s < sends.size(); ++s)
        bytes += sends[s].arrival_us < t && t < last_us[s] ? kChunk : 0;
      if (bytes > topology.node(NodeId{2}).buffer_bytes) return false;
    }
    return true;
  });
}

TEST(ReplayPairing, StoringSwitchesAgreeWithTryingAll) {
  Random random(12);
  int valid = 0;
  for (int round = 0; round < 30000; ++round) {
    const bool multicast = random.below(2) == 0;
    Fabric fabric(2);
    const int sw = fabric.store_and_forward(kChunk * static_cast<double>(random.below(4)), multicast);
    const auto chunk = [&] { return static_cast<int>(random.below(2)); };
    const auto tens = [&](std::size_t n) { return 10 * static_cast<double>(random.below(n)); };
    std::vector<Send> sends;
    const std::size_t arrivals = 1 + random.below(4);
    for (std::size_t i = 0; i < arrivals; ++i) {
      const double t = tens(5);
      sends.push_back(send(chunk(), fabric.link(0, sw), t, t + 10));
    }
    for (std::size_t i = 0; i < arrivals + (multicast ? random.below(3) : 0); ++i) {
      const double t = (i < arrivals ? sends[i].arrival_us : 10) + tens(3);
      sends.push_back(send(i < arrivals ? sends[i].chunk.value : chunk(), fabric.link(sw, 1), t, t + 10));
    }
    const Topology topology = fabric.build();
    const bool expected = stores_and_forwards(topology, sends);
    ASSERT_EQ(obeys_rules(topology, sends, 2), expected) << "round " << round;
    valid += expected;
  }
  EXPECT_GT(valid, 1000);
}

TEST(ReplayPairing, ACopyWaitsForWhatArrivesAtTheSameInstant) {
  // 0 -> s -> t -> s -> 1 in no time: the second arrival at s serves the second send from there.
  Fabric fabric(2);
  const int s = fabric.store_and_forward(0);
  const int t = fabric.store_and_forward(0);
  fabric.link(s, t);
  fabric.link(t, s);
  fabric.link(s, 1);
  fabric.link(0, s);
  const Topology topology = fabric.build();
  const double tiny = 1e-9;
  const Demand demand = custom(topology, {part(0, tiny * kUs, {1})});
  std::vector<Send> sends;
  for (int l = 0; l < 4; ++l) sends.push_back(send(0, l, 5, 5 + tiny));
  expect_finish(topology, demand, sends, 5 + tiny);
  sends.erase(sends.begin() + 1);  // what comes to t stays there
  expect_violation(topology, demand, sends, {"rule 5", "link 0"});
}

}  // namespace
}  // namespace rondo::test_replay_pairing
