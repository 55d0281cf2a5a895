#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/profile/profile.hpp"

namespace rondo::profile::test_profile {
namespace {

struct Pipe {
  double GBps = 0;
  double latency_us = 0;
};

/// A network whose figures are known: a flow fills all pipes of its route at once, pipes are shared fairly.
class KnownWire final : public Wire {
 public:
  using Route = std::vector<std::string>;
  KnownWire(int ranks, std::map<std::string, Pipe> pipes, Route (*route)(int from, int to), double message_us)
      : ranks_(ranks), pipes_(std::move(pipes)), route_(route), message_us_(message_us) {}

  int size() const override { return ranks_; }

  std::vector<std::vector<std::vector<double>>> time_us(const std::vector<Round>& rounds) override {
    std::vector<std::vector<std::vector<double>>> times;
    for (const Round& round : rounds) {
      times.emplace_back();
      const std::vector<double> moving = moving_us(round.flows);
      for (std::size_t f = 0; f < round.flows.size(); ++f) {
        const Flow& flow = round.flows[f];
        const double us = flow.messages * message_us_ + moving[f] + latency_us(flow.from, flow.to) +
                          message_us_ + latency_us(flow.to, flow.from);
        times.back().emplace_back();
        for (int r = 0; r < round.repetitions; ++r) times.back().back().push_back(us * noise());
      }
    }
    return times;
  }

  double latency_us(int from, int to) const {
    double sum = 0;
    for (const std::string& name : route_(from, to)) sum += pipes_.at(name).latency_us;
    return sum;
  }
  double GBps(int from, int to) const {
    double least = std::numeric_limits<double>::infinity();
    for (const std::string& name : route_(from, to)) least = std::min(least, pipes_.at(name).GBps);
    return least;
  }

  double noise_part = 0;  ///< up to so much longer, always the same sequence

 private:
  double noise() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return 1 + noise_part * static_cast<double>(state_ >> 40) / static_cast<double>(1ULL << 24);
  }

  /// By water-filling, again whenever a flow has ended.
  std::vector<double> moving_us(const std::vector<Flow>& flows) const {
    std::vector<double> left;
    for (const Flow& flow : flows)
      left.push_back(static_cast<double>(flow.messages) * static_cast<double>(flow.bytes));
    std::vector<double> end(flows.size(), -1);
    for (double now = 0; std::ranges::any_of(end, [](double e) { return e < 0; });) {
      const std::vector<double> rate = fair_rates(flows, end);
      double step = std::numeric_limits<double>::infinity();
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (end[f] < 0) step = std::min(step, left[f] / (1e3 * rate[f]));
      }
      now += step;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (end[f] >= 0) continue;
        left[f] -= step * 1e3 * rate[f];
        if (left[f] < 1e-6) end[f] = now;
      }
    }
    return end;
  }

  std::vector<double> fair_rates(const std::vector<Flow>& flows, const std::vector<double>& end) const {
    std::vector<double> rate(flows.size(), 0);
    std::vector<bool> fixed(flows.size());
    for (std::size_t f = 0; f < flows.size(); ++f) fixed[f] = end[f] >= 0;
    while (std::ranges::find(fixed, false) != fixed.end()) {
      std::string narrowest;
      double share = std::numeric_limits<double>::infinity();
      for (const auto& [name, pipe] : pipes_) {
        double room = pipe.GBps;
        int open = 0;
        for (std::size_t f = 0; f < flows.size(); ++f) {
          const Route route = route_(flows[f].from, flows[f].to);
          if (end[f] >= 0 || std::ranges::find(route, name) == route.end()) continue;
          if (fixed[f]) room -= rate[f];
          if (!fixed[f]) ++open;
        }
        if (open > 0 && room / open < share) {
          share = room / open;
          narrowest = name;
        }
      }
      for (std::size_t f = 0; f < flows.size(); ++f) {
        const Route route = route_(flows[f].from, flows[f].to);
        if (fixed[f] || std::ranges::find(route, narrowest) == route.end()) continue;
        rate[f] = share;
        fixed[f] = true;
      }
    }
    return rate;
  }

  int ranks_;
  std::map<std::string, Pipe> pipes_;
  Route (*route_)(int, int);
  double message_us_;
  unsigned long long state_ = 1;
};

std::string numbered(const char* name, int number) {
  return name + std::to_string(number);
}

/// Boxes of two: a pipe for each way inside, a card of 10 GB/s for each box and way, 14 GB/s out of box 0 to
/// all others.
KnownWire boxes_of_two() {
  std::map<std::string, Pipe> pipes;
  for (int r = 0; r < 6; ++r) pipes[numbered("inside", r)] = {40, 0.5};
  for (int box = 0; box < 3; ++box) {
    pipes[numbered("out", box)] = {10, 1.5};
    pipes[numbered("in", box)] = {10, 1.5};
  }
  return {6, pipes,
          [](int from, int to) -> KnownWire::Route {
            if (from / 2 == to / 2) return {numbered("inside", from)};
            return {numbered("out", from / 2), numbered("in", to / 2)};
          },
          0.7};
}

/// Every pair has a pipe of its own; 0 to 2 is slow; from 0-2 to 3-5 all pass a trunk that only three or more
/// fill.
KnownWire pairs_behind_a_trunk() {
  std::map<std::string, Pipe> pipes = {{"trunk", {25, 0}}};
  for (int a = 0; a < 6; ++a) {
    for (int b = 0; b < 6; ++b) {
      pipes["pair" + std::to_string(10 * a + b)] = {a == 0 && b == 2 ? 4.0 : a / 3 == b / 3 ? 20.0 : 10.0, 1};
    }
  }
  return {6, pipes,
          [](int from, int to) -> KnownWire::Route {
            KnownWire::Route route = {"pair" + std::to_string(10 * from + to)};
            if (from < 3 && to >= 3) route.push_back("trunk");
            return route;
          },
          0};
}

void expect_figures(const FabricProfile& profile, const KnownWire& wire, double message_us, double part) {
  for (const LinkFigures& link : profile.links) {
    const auto near = [&](const Figure& figure, double true_value) {
      EXPECT_NEAR(figure.value, true_value, part * true_value + 1e-6) << link.from << " to " << link.to;
    };
    near(link.latency_us, wire.latency_us(link.from, link.to));
    near(link.GBps, wire.GBps(link.from, link.to));
    near(link.message_us, message_us);
  }
}

std::string refusal(Wire& wire, const ProfileOptions& options, ExitCode code) {
  try {
    measure_fabric(wire, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Profile, FindsFiguresClustersAndSharedCards) {
  KnownWire wire = boxes_of_two();
  const FabricProfile profile = measure_fabric(wire, {});
  expect_figures(profile, wire, 0.7, 1e-6);
  EXPECT_EQ(profile.cluster, (std::vector<int>{0, 0, 1, 1, 2, 2}));
  ASSERT_EQ(profile.groups.size(), 6U);  // a card each way for every box
  for (const SharedGroup& group : profile.groups) {
    EXPECT_EQ(group.links.size(), 8U) << group.name;
    EXPECT_NEAR(group.GBps, 10, 0.01) << group.name;
  }
  EXPECT_TRUE(profile.slow.empty());
  const Topology topology = to_topology(profile, "boxes");
  EXPECT_EQ(topology.num_gpus(), 6U);
  EXPECT_EQ(topology.num_links(), 30U);
  EXPECT_EQ(topology.shared_bandwidth().size(), 6U);
  EXPECT_EQ(topology.nodes()[3].chassis, 1);
  // Links of one kind are equal to the last bit.
  EXPECT_EQ(topology.links()[0].bandwidth_GBps, topology.links()[29].bandwidth_GBps);
}

TEST(Profile, FindsTheSlowLinkAndWhatOnlyManyShare) {
  KnownWire wire = pairs_behind_a_trunk();
  const FabricProfile profile = measure_fabric(wire, {});
  expect_figures(profile, wire, 0, 1e-6);
  EXPECT_EQ(profile.cluster, (std::vector<int>{0, 0, 0, 1, 1, 1}));
  ASSERT_EQ(profile.slow.size(), 1U);
  EXPECT_EQ(profile.links[profile.slow[0].link].from, 0);
  EXPECT_EQ(profile.links[profile.slow[0].link].to, 2);
  ASSERT_EQ(profile.groups.size(), 1U);  // the trunk: two at once do not fill it
  EXPECT_EQ(profile.groups[0].name, "from 0-2 to 3-5");
  EXPECT_NEAR(profile.groups[0].GBps, 25, 0.3);
}

TEST(Profile, StatesErrorsThatCoverTheNoise) {
  KnownWire quiet = boxes_of_two();
  KnownWire noisy = boxes_of_two();
  noisy.noise_part = 0.04;
  const FabricProfile profile = measure_fabric(noisy, {});
  EXPECT_EQ(profile.cluster, (std::vector<int>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(profile.groups.size(), 6U);
  for (const LinkFigures& link : profile.links) {
    EXPECT_GT(link.GBps.error, 0);
    const double true_GBps = quiet.GBps(link.from, link.to);
    EXPECT_NEAR(link.GBps.value, true_GBps, link.GBps.error + 0.01 * true_GBps);
  }
}

TEST(Profile, RefusesWhatTellsNothing) {
  KnownWire wire = boxes_of_two();
  EXPECT_NE(refusal(wire, {.passes = 2}, ExitCode::usage).find("--passes is 2"), std::string::npos);
  EXPECT_NE(refusal(wire, {.max_bytes = 1000}, ExitCode::usage).find("--max-bytes is 1 KB"),
            std::string::npos);
  KnownWire many(
      kMostRanks + 1, {{"all", {1, 1}}}, [](int, int) -> KnownWire::Route { return {"all"}; }, 0);
  EXPECT_NE(refusal(many, {}, ExitCode::unavailable).find("at most 24 ranks"), std::string::npos);
  // Longer messages that take no longer: no bandwidth.
  KnownWire instant(
      2, {{"all", {1e12, 5}}}, [](int, int) -> KnownWire::Route { return {"all"}; }, 1);
  instant.noise_part = 0.5;
  const std::string text = refusal(instant, {}, ExitCode::bad_data);
  EXPECT_NE(text.find("rank 0 to rank 1"), std::string::npos) << text;
  EXPECT_NE(text.find("more --passes"), std::string::npos) << text;
}

TEST(Profile, ASampleThatTellsNothingIsRefused) {
  EXPECT_THROW(fit_line({{1, 8, 1}, {2, 8, 1.5}, {1, 1000, 2}}), Error);  // three for three unknowns
  EXPECT_THROW(fit_line({{1, 8, 1}, {1, 100, 1.5}, {1, 1000, 2}, {1, 4, 1}}), Error);  // never two messages
  EXPECT_THROW(fit_line({{1, 8, 0}, {2, 8, 1.5}, {1, 1000, 2}, {1, 4, 1}}), Error);  // the clock stood still
}

TEST(Profile, TablesNameEveryLink) {
  KnownWire wire = pairs_behind_a_trunk();
  const FabricProfile profile = measure_fabric(wire, {});
  EXPECT_EQ(std::ranges::count(to_tsv(profile), '\n'), 31);
  const std::string text = describe(profile);
  EXPECT_NE(text.find("rank 0 to rank 2: 4 GB/s, its peers 20"), std::string::npos) << text;
  EXPECT_NE(text.find("cluster 1: ranks 3 4 5"), std::string::npos) << text;
}

}  // namespace
}  // namespace rondo::profile::test_profile
