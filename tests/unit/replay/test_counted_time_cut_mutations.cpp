#include <algorithm>
#include <limits>

#include "certificates.hpp"
#include "mutated_time_cut.hpp"
#include "rondo/bounds/time_cuts.hpp"
#include "rondo/core/index.hpp"

namespace rondo::test_counted_time_cut_mutations {
namespace {

/// AllReduce among 3 or 4 GPUs, perhaps around a switch, which is the last node.
struct SumCase {
  Topology topology;
  Demand demand;
  double bytes = 0;
  std::vector<double> ready_us = {};  ///< per GPU
};

Topology random_topology(Random& random) {
  const int gpus = 3 + static_cast<int>(random.below(2));
  Fabric fabric(gpus);
  const bool has_switch = random.unit() < 0.7;
  const int nodes = has_switch ? fabric.cut_through(random.unit() < 0.5, random.unit() < 0.3) + 1 : gpus;
  const double message_us = random.unit() < 0.3 ? 0.5 : 0;
  std::vector<int> from_first;
  for (int n = 0; n < nodes; ++n) {
    for (int m = 0; m < nodes; ++m) {
      const bool is_needed = m == (n + 1) % nodes || (has_switch && (n >= gpus || m >= gpus));
      if (m == n || (!is_needed && random.unit() > (has_switch ? 0.2 : 0.6))) continue;
      const int l = fabric.link(n, m, 1 + static_cast<int>(random.below(3)), 0.2 + 2 * random.unit(),
                                message_us * static_cast<double>(random.below(3)));
      if (n == 0) from_first.push_back(l);
    }
  }
  if (from_first.size() > 1 && random.unit() < 0.3) fabric.share(from_first, 1);
  return fabric.build();
}

SumCase random_sum(Random& random) {
  Topology topology = random_topology(random);
  std::vector<int> all;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) all.push_back(static_cast<int>(g));
  SumCase asked{.topology = std::move(topology),
                .demand = make_demand(Collective::allreduce, 1, all.size(), 1),
                .bytes = (0.3 + 5 * random.unit()) * kUs};
  const bool is_late = random.unit() < 0.3;
  for (std::size_t g = 0; g < all.size(); ++g) asked.ready_us.push_back(is_late ? 2 * random.unit() : 0);
  Contribution sum = sum_of(all, asked.bytes, all);
  if (is_late) sum.source_ready_us = asked.ready_us;
  asked.demand = custom(asked.topology, {sum});
  return asked;
}

/// When the sum is at one GPU at the earliest if it comes together along one tree of GPUs. Without message
/// costs in any number of pieces that follow one another, else in one. Links that several edges take carry
/// them side by side, but what a switch adds once.
class TreesTo {
 public:
  TreesTo(const SumCase& asked, std::size_t root) : asked_(asked), root_(root) {
    const std::size_t gpus = asked.topology.num_gpus();
    routes_.resize(gpus);
    for (std::size_t g = 0; g < gpus; ++g) {
      if (g != root) routes_[g] = routes_from(NodeId(g));
    }
    chosen_.resize(gpus);
  }

  double least_us() {
    choose(0);
    return least_us_;
  }

 private:
  struct Route {
    std::size_t parent = 0;
    std::vector<LinkId> links;  ///< one, or two by the switch
  };

  std::vector<Route> routes_from(NodeId from) const {
    const Topology& t = asked_.topology;
    std::vector<Route> routes;
    for (const LinkId l : t.out_links(from)) {
      const NodeId next = t.link(l).dst;
      if (t.is_gpu(next)) {
        routes.push_back({next.index(), {l}});
        continue;
      }
      for (const LinkId onward : t.out_links(next)) {
        if (t.link(onward).dst != from) routes.push_back({t.link(onward).dst.index(), {l, onward}});
      }
    }
    return routes;
  }

  void choose(std::size_t g) {
    if (g == routes_.size()) {
      if (is_tree()) least_us_ = std::min(least_us_, finish_us());
      return;
    }
    if (g == root_) return choose(g + 1);
    for (const Route& route : routes_[g]) {
      chosen_[g] = &route;
      choose(g + 1);
    }
  }

  bool is_tree() const {
    for (std::size_t g = 0; g < chosen_.size(); ++g) {
      std::size_t at = g;
      for (std::size_t i = 0; i < chosen_.size() && at != root_; ++i) at = chosen_[at]->parent;
      if (at != root_) return false;
    }
    return true;
  }

  double finish_us() const {
    const Topology& t = asked_.topology;
    std::vector<int> uses(t.num_links(), 0);
    for (std::size_t g = 0; g < chosen_.size(); ++g) {
      if (g == root_) continue;
      for (const LinkId l : chosen_[g]->links) {
        if (t.is_gpu(t.link(l).src) || !t.node(t.link(l).src).reduce)
          ++uses[l.index()];
        else
          uses[l.index()] = 1;
      }
    }
    double GBps = std::numeric_limits<double>::infinity();
    double message_us = 0;
    for (std::size_t l = 0; l < uses.size(); ++l) {
      if (uses[l] == 0) continue;
      GBps = std::min(GBps, t.link(LinkId(l)).bandwidth_GBps / uses[l]);
      message_us = std::max(message_us, t.link(LinkId(l)).message_us * uses[l]);
    }
    for (const SharedBandwidth& group : t.shared_bandwidth()) {
      int together = 0;
      for (const LinkId l : group.links) together += uses[l.index()];
      if (together > 0) GBps = std::min(GBps, group.bandwidth_GBps / together);
    }
    const double send_us = asked_.bytes / kUs / GBps;
    const double first_us = first_byte_us(root_, message_us > 0 ? message_us + send_us : 0);
    return message_us > 0 ? first_us : first_us + send_us;
  }

  double first_byte_us(std::size_t g, double on_each_edge_us) const {
    double us = asked_.ready_us[g];
    for (std::size_t from = 0; from < chosen_.size(); ++from) {
      if (from == root_ || chosen_[from]->parent != g) continue;
      double arrival_us = first_byte_us(from, on_each_edge_us) + on_each_edge_us;
      for (const LinkId l : chosen_[from]->links) arrival_us += asked_.topology.link(l).latency_us;
      us = std::max(us, arrival_us);
    }
    return us;
  }

  const SumCase& asked_;
  std::size_t root_;
  std::vector<std::vector<Route>> routes_ = {};
  std::vector<const Route*> chosen_ = {};
  double least_us_ = std::numeric_limits<double>::infinity();
};

struct Tally {
  int accepted = 0;
  int stronger = 0;
  int refused = 0;
  double nearest = 0;  ///< the greatest of what was proven as a part of the least finish
};

void mutate(const SumCase& asked, const LowerBound& found, const std::vector<double>& least_us,
            Random& random, Tally& tally) {
  auto cut = std::get<TimeCutCertificate>(found.certificate);
  double best_us = found.us;
  ASSERT_FALSE(cut.sources.empty());
  ASSERT_LE(found.us, least_us[cut.gpu.index()] * (1 + 1e-9));
  for (int i = 0; i < 20; ++i) {
    const TimeCutCertificate changed = mutated(cut, random, least_us.size());
    try {
      const double us = sound_bound_of(asked.topology, asked.demand, changed);
      const double most_us = least_us[changed.gpu.index()];
      ASSERT_LE(us, most_us * (1 + 1e-9));
      tally.nearest = std::max(tally.nearest, us / most_us);
      ++tally.accepted;
      // From there on, so that the strongest ones are changed most.
      if (us <= best_us) continue;
      ++tally.stronger;
      best_us = us;
      cut = changed;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      ++tally.refused;
    }
  }
}

TEST(CountedTimeCutMutations, ProveNoMoreThanTheBestTreeNeeds) {
  // 0 unless --gtest_random_seed says otherwise.
  Random random(11 + static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)));
  Tally tally;
  int without = 0;
  while (tally.accepted + tally.refused < 1000) {
    const SumCase asked = random_sum(random);
    const Symmetry symmetry = trivial_symmetry(asked.topology);
    const auto plain = find_time_cut(asked.topology, asked.demand, symmetry, {}, TimeCutEffort::all, 0);
    const auto bound = find_counted_cut(asked.topology, asked.demand, symmetry, {}, plain ? plain->us : 0.1);
    if (!bound) {
      ASSERT_LT(++without, 2000);
      continue;
    }
    std::vector<double> least_us;
    for (std::size_t g = 0; g < asked.topology.num_gpus(); ++g)
      least_us.push_back(TreesTo(asked, g).least_us());
    mutate(asked, *bound, least_us, random, tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.accepted, 100);
  EXPECT_GT(tally.refused, 300);
  EXPECT_GT(tally.stronger, 10);
  // Some are nearly as strong as any could be.
  EXPECT_GT(tally.nearest, 0.9);
}

}  // namespace
}  // namespace rondo::test_counted_time_cut_mutations
