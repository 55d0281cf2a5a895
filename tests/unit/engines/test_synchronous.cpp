#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "expect_error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/synchronous.hpp"
#include "rondo/formulations/formulations.hpp"
#include "rondo/solvers/solvers.hpp"
#include "rup_checker.hpp"
#include "synchronous/cardinality.hpp"
#include "topologies.hpp"

namespace rondo {
EngineInfo steps_engine();
}  // namespace rondo

namespace rondo::test_synchronous {
namespace {

/// A state is a set of (chunk, GPU); these are the sets that algorithms can end with, tried one by one.
class AllAlgorithms {
 public:
  explicit AllAlgorithms(const StepInstance& instance) : in_(instance) {}

  bool has_one() {
    std::set<std::uint32_t> reached{start()};
    std::vector<std::set<std::uint32_t>> by_rounds(index(in_.rounds + 1));
    by_rounds[0] = reached;
    for (int s = 0; s < in_.steps; ++s) {
      std::vector<std::set<std::uint32_t>> next(by_rounds.size());
      for (std::size_t used = 0; used < by_rounds.size(); ++used) {
        for (std::size_t r = 1; used + r < by_rounds.size(); ++r) {
          for (const std::uint32_t state : by_rounds[used])
            send(state, state, 0, static_cast<int>(r), std::vector<int>(in_.arcs.size(), 0), next[used + r]);
        }
      }
      by_rounds = std::move(next);
    }
    return std::ranges::any_of(by_rounds, [&](const auto& states) {
      return std::ranges::any_of(states, [&](std::uint32_t state) { return (state & goal()) == goal(); });
    });
  }

 private:
  int num_chunks() const { return static_cast<int>(in_.data.size()) * in_.chunks; }
  std::uint32_t bit(int chunk, int gpu) const { return 1U << (chunk * in_.num_gpus + gpu); }
  const StepDatum& datum(int chunk) const { return in_.data[index(chunk / in_.chunks)]; }
  std::uint32_t start() const {
    std::uint32_t state = 0;
    for (int c = 0; c < num_chunks(); ++c) state |= bit(c, datum(c).origin);
    return state;
  }
  std::uint32_t goal() const {
    std::uint32_t state = 0;
    for (int c = 0; c < num_chunks(); ++c) {
      for (const int g : datum(c).wanted) state |= bit(c, g);
    }
    return state;
  }
  void send(std::uint32_t before, std::uint32_t state, int from_move, int rounds, std::vector<int> load,
            std::set<std::uint32_t>& ends) const {
    ends.insert(state);
    const int moves = num_chunks() * static_cast<int>(in_.arcs.size());
    for (int m = from_move; m < moves; ++m) {
      const int chunk = m / static_cast<int>(in_.arcs.size());
      const std::size_t a = index(m % static_cast<int>(in_.arcs.size()));
      const StepArc& arc = in_.arcs[a];
      if ((before & bit(chunk, arc.from)) == 0 || (state & bit(chunk, arc.to)) != 0) continue;
      if (load[a] == rounds * in_.bounds[a].chunks) continue;
      std::vector<int> more = load;
      ++more[a];
      send(before, state | bit(chunk, arc.to), m + 1, rounds, std::move(more), ends);
    }
  }

  const StepInstance& in_;
};

/// What a plan may not do, by the words of the paper: empty where it is an algorithm of the instance.
std::string fault_of(const StepPlan& plan, const StepInstance& instance) {
  if (std::ssize(plan.rounds) != instance.steps) return "number of steps";
  int rounds = 0;
  for (const int r : plan.rounds) rounds += r;
  if (rounds > instance.rounds || std::ranges::min(plan.rounds) < 1) return "number of rounds";
  std::set<std::pair<int, int>> held;
  const int chunks = static_cast<int>(instance.data.size()) * instance.chunks;
  for (int c = 0; c < chunks; ++c) held.insert({c, instance.data[index(c / instance.chunks)].origin});
  for (int s = 0; s < instance.steps; ++s) {
    std::vector<int> load(instance.arcs.size(), 0);
    std::set<std::pair<int, int>> next = held;
    for (const StepSend& send : plan.sends) {
      if (send.step != s) continue;
      const StepArc& arc = instance.arcs[index(send.arc)];
      if (!held.contains({send.chunk, arc.from})) return "sends what is not there";
      next.insert({send.chunk, arc.to});
      ++load[index(send.arc)];
    }
    for (const StepBound& bound : instance.bounds) {
      int sum = 0;
      for (const int a : bound.arcs) sum += load[index(a)];
      if (sum > bound.chunks * plan.rounds[index(s)]) return "carries too much";
    }
    held = std::move(next);
  }
  for (int c = 0; c < chunks; ++c) {
    for (const int g : instance.data[index(c / instance.chunks)].wanted) {
      if (!held.contains({c, g})) return "does not deliver";
    }
  }
  return "";
}

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / name;
}

TEST(Cardinality, CountsWhatIsTrueUpToTheMost) {
  for (int inputs = 1; inputs <= 5; ++inputs) {
    for (unsigned set = 0; set < 1U << inputs; ++set) {
      Cnf cnf;
      std::vector<int> variables;
      for (int i = 0; i < inputs; ++i) {
        variables.push_back(cnf.new_variable());
        cnf.add({(set >> i & 1) != 0 ? variables.back() : -variables.back()});
      }
      const std::vector<int> total = count_true(cnf, variables, 3);
      const int truly = std::popcount(set);
      for (std::size_t i = 0; i < total.size(); ++i) {
        // Whether "not more than i" can be true.
        Cnf asked = cnf;
        asked.add({-total[i]});
        EXPECT_EQ(make_cadical_solver()->solve(asked, {}).status == SatStatus::satisfiable,
                  truly <= static_cast<int>(i));
      }
    }
  }
}

// Every answer on small instances is that of trying all algorithms; plans keep the rules, refutations hold.
StepInstance any_instance(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  StepInstance instance{.num_gpus = 3 + below(2), .chunks = 1 + below(2), .steps = 1 + below(3)};
  for (int a = 0; a < instance.num_gpus; ++a) {
    for (int b = 0; b < instance.num_gpus; ++b) {
      if (a == b || below(3) == 0) continue;
      instance.bounds.push_back({{static_cast<int>(instance.arcs.size())}, 1 + below(2)});
      instance.arcs.push_back({a, b});
    }
  }
  for (int d = 0; d < 2; ++d) {
    StepDatum datum{.origin = below(instance.num_gpus)};
    for (int g = 0; g < instance.num_gpus; ++g) {
      if (g != datum.origin && below(2) == 0) datum.wanted.push_back(g);
    }
    if (!datum.wanted.empty()) instance.data.push_back(datum);
  }
  instance.rounds = instance.steps + below(2);
  return instance;
}

/// Three GPUs, each of which can be turned into the next one.
StepInstance turning_instance(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  StepInstance instance{.num_gpus = 3, .steps = 1 + below(3)};
  const bool both_ways = below(2) == 0;
  const int chunks = 1 + below(2);
  const int farthest = 1 + below(2);
  for (int g = 0; g < 3; ++g) {
    for (int way = 1; way <= (both_ways ? 2 : 1); ++way) {
      instance.bounds.push_back({{static_cast<int>(instance.arcs.size())}, way == 1 ? chunks : 1});
      instance.arcs.push_back({g, (g + way) % 3});
    }
    StepDatum datum{.origin = g, .wanted = {(g + farthest) % 3}};
    if (farthest == 2) datum.wanted.push_back((g + 1) % 3);
    instance.data.push_back(datum);
  }
  instance.rounds = instance.steps + below(2);
  return instance;
}

// Every answer on small instances is that of trying all algorithms; plans keep the rules, refutations hold.
TEST(Steps, AnswersAreThoseOfTryingAllAlgorithms) {
  std::mt19937 random(7);
  int satisfiable = 0;
  int refuted = 0;
  int turned = 0;
  for (int trial = 0; trial < 110; ++trial) {
    const StepInstance instance = trial % 4 == 0 ? turning_instance(random) : any_instance(random);
    if (instance.arcs.empty() || instance.data.empty()) continue;
    turned += find_turn(instance) ? 1 : 0;
    const std::filesystem::path proof = temporary("steps.drat");
    const StepAnswer answer = find_steps(instance, *make_cadical_solver(), {}, proof);
    const bool expected = AllAlgorithms(instance).has_one();
    ASSERT_EQ(answer.status == SatStatus::satisfiable, expected) << "trial " << trial;
    if (expected) {
      ++satisfiable;
      EXPECT_EQ(fault_of(*answer.plan, instance), "") << "trial " << trial;
      EXPECT_FALSE(std::filesystem::exists(proof));
    } else {
      ++refuted;
      EXPECT_EQ(answer.status, SatStatus::unsatisfiable);
      EXPECT_EQ(RupChecker::check(proof.string() + ".cnf", proof.string()), "") << "trial " << trial;
    }
  }
  EXPECT_GT(satisfiable, 20);
  EXPECT_GT(refuted, 20);
  EXPECT_GE(turned, 25);
}

/// SCCL's DGX-1: 25 GB/s a NVLink, each message costs 0.7 us.
std::shared_ptr<const Topology> dgx1() {
  std::vector<Link> links;
  const auto pair = [&](int a, int b, double GBps) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      Link one = link(from, to, GBps, 0);
      one.message_us = 0.7;
      links.push_back(one);
    }
  };
  for (const auto& [a, b] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 3}, {3, 2}, {2, 6}, {6, 7}, {7, 5}, {5, 4}, {4, 0}})
    pair(a, b, 50);
  for (const auto& [a, b] :
       std::vector<std::pair<int, int>>{{0, 2}, {0, 3}, {1, 2}, {1, 5}, {3, 7}, {4, 6}, {4, 7}, {5, 6}})
    pair(a, b, 25);
  return fabric(std::vector<Node>(8), links);
}

EngineResult solved(const std::shared_ptr<const Topology>& topology, const Demand& demand, int steps,
                    int rounds, const std::string& proof = "", std::int64_t max_conflicts = -1) {
  const Toolbox tools{all_formulations(), make_clp_solver(), make_cbc_solver(), make_clp_column_master,
                      make_cadical_solver()};
  EngineOptions options;
  options.steps = steps;
  options.rounds = rounds;
  options.proof = proof;
  options.max_conflicts = max_conflicts;
  return steps_engine().prepare({topology, demand}, options, tools)(demand, options);
}

// SCCL, table 4: C chunks a GPU (AllToAll: 8 C a GPU), S steps, R rounds; cost S alpha + R / C L beta.
TEST(StepsEngine, OnADgx1TheRowsOfThePaperEndWithinTheirCost) {
  struct Row {
    Collective collective;
    int chunks;
    int steps;
    int rounds;
    double chunk_us;  ///< on a link of 25 GB/s
  };
  const double gigabyte = 1e9;
  const std::vector<Row> rows{{Collective::allgather, 1, 2, 2, 5000},
                              {Collective::allgather, 2, 2, 3, 2500},
                              {Collective::allgather, 6, 3, 7, 5000.0 / 6},
                              {Collective::alltoall, 3, 2, 8, 5000.0 / 3},
                              {Collective::broadcast, 6, 3, 3, 40000.0 / 6}};
  for (const Row& row : rows) {
    const Demand demand = make_demand(row.collective, gigabyte, 8, row.chunks);
    const EngineResult result = solved(dgx1(), demand, row.steps, row.rounds);
    ASSERT_TRUE(result.schedule);
    const ReplayResult replayed = replay(*dgx1(), demand, result.schedule->sends);
    ASSERT_TRUE(replayed.valid()) << *replayed.violation;
    const double cost = row.steps * 0.7 + row.rounds * row.chunk_us;
    EXPECT_NEAR(result.metrics.at("step_cost_us"), cost, 1e-6);
    EXPECT_LE(replayed.finish_us, cost * (1 + 1e-9));
  }
}

// The paper's frontier has (2, 2, 3) and then (6, 3, 7): nothing cheaper takes two steps.
TEST(StepsEngine, WhereThereIsNoneTheProofHolds) {
  const std::filesystem::path proof = temporary("dgx1.drat");
  const Demand demand = make_demand(Collective::allgather, 1e9, 8, 5);
  expect_error(ExitCode::unavailable, {"there is none", "5 chunks", "2 steps", "6 rounds", proof.string()},
               [&] { solved(dgx1(), demand, 2, 6, proof.string()); });
  EXPECT_EQ(RupChecker::check(proof.string() + ".cnf", proof.string()), "");
}

TEST(StepsEngine, ConflictsLimitItsWork) {
  const Demand demand = make_demand(Collective::allgather, 1e9, 8, 6);
  expect_error(ExitCode::unavailable, {"is open after", "--max-conflicts"},
               [&] { solved(dgx1(), demand, 3, 7, "", 10); });
}

TEST(StepsEngine, RefusesFabricsWithoutSmallWholeCapacities) {
  const Demand demand = make_demand(Collective::allgather, kMB, 3, 1);
  const std::vector<Link> links{link(0, 1), link(1, 2, 1.5), link(2, 0)};
  expect_error(ExitCode::unavailable, {"link 1", "1.5 GB/s"},
               [&] { solved(fabric(std::vector<Node>(3), links), demand, 2, 2); });
  expect_error(ExitCode::unavailable, {"a switch (node 3)"}, [&] { solved(star(3), demand, 2, 2); });
}

TEST(Cadical, StopsAtConflictsAndInterrupts) {
  // Eight pigeons in seven holes.
  Cnf cnf;
  std::vector<std::vector<int>> sits(8, std::vector<int>(7));
  for (auto& pigeon : sits) {
    for (int& hole : pigeon) hole = cnf.new_variable();
    cnf.add(pigeon);
  }
  for (std::size_t hole = 0; hole < 7; ++hole) {
    for (std::size_t a = 0; a < 8; ++a) {
      for (std::size_t b = 0; b < a; ++b) cnf.add({-sits[a][hole], -sits[b][hole]});
    }
  }
  const auto solver = make_cadical_solver();
  EXPECT_EQ(solver->solve(cnf, {.max_conflicts = 20}).status, SatStatus::unknown);
  const std::atomic<bool> interrupt = true;
  SolveLimits limits;
  limits.interrupt = &interrupt;
  EXPECT_EQ(solver->solve(cnf, {.deadline = Deadline(limits)}).status, SatStatus::unknown);
  const std::filesystem::path proof = temporary("pigeons.drat");
  const SatAnswer refuted = solver->solve(cnf, {}, proof);
  EXPECT_EQ(refuted.status, SatStatus::unsatisfiable);
  EXPECT_GT(refuted.conflicts, 20);
  const std::filesystem::path formula = temporary("pigeons.cnf");
  std::ofstream(formula) << to_dimacs(cnf);
  EXPECT_EQ(RupChecker::check(formula, proof), "");
  // Nothing follows from one clause less, by the checker at least.
  std::ofstream(formula) << "p cnf 56 1\n1 0\n";
  EXPECT_NE(RupChecker::check(formula, proof), "");
  expect_error(ExitCode::io, {"/nowhere/proof"}, [&] { solver->solve(cnf, {}, "/nowhere/proof"); });
}

}  // namespace
}  // namespace rondo::test_synchronous
