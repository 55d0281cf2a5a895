#include <algorithm>

#include "random_run.hpp"
#include "rondo/core/random.hpp"
#include "schedules.hpp"
#include "sum_schedules.hpp"
#include "topologies.hpp"

/// Programs that were right, damaged: the checker has to refuse whatever changes the result.
namespace rondo::test::test_mutations {
namespace {

using msccl::Buffer;
using msccl::Dependency;
using msccl::Gpu;
using msccl::Program;
using msccl::Step;
using msccl::StepType;
using msccl::ThreadBlock;

/// Four GPUs in a ring of unequal links both ways, which makes detours worth while.
Topology uneven_ring() {
  std::vector<Link> links;
  for (int g = 0; g < 4; ++g) {
    links.push_back({NodeId{g}, NodeId{(g + 1) % 4}, 1.0 + g % 2, 1});
    links.push_back({NodeId{(g + 1) % 4}, NodeId{g}, 1.0, 1});
  }
  return Topology({"uneven", "", std::vector<Node>(4), links, {}});
}

/// With scratch that is used again, and messages and threadblocks' order that imply other waits.
std::vector<Program> programs() {
  const Topology ring = uneven_ring();
  const Topology torus = generate_topology("torus", {{"dims", "3x3"}});
  return {lowered(scheduled(load_topology("dgx1"), make_demand(Collective::allgather, 8 * kMB, 8, 4))),
          lowered(scheduled(ring, make_demand(Collective::alltoall, 16 * kMB, 4, 3))),
          lowered(scheduled(torus, make_demand(Collective::allgather, 9 * kMB, 9, 2))),
          lowered(scheduled(torus, make_demand(Collective::alltoall, 81 * kMB, 9, 1)))};
}

/// Butterflies, rings and trees; sums in scratch, in the output and passed on.
std::vector<Program> combining_programs() {
  const Topology ring = *one_way_ring(4);
  const Topology full = *generated("full", {{"gpus", "8"}});
  const auto allreduce = [](int gpus, int chunks) {
    return make_demand(Collective::allreduce, 8 * kMB, static_cast<std::size_t>(gpus), chunks);
  };
  return {lowered(in_rounds(ring, allreduce(4, 8), ring_sums(4, 2, true))),
          lowered(in_rounds(full, allreduce(8, 8), halving_sums(8, 1, true))),
          lowered(in_rounds(full, allreduce(8, 2), doubling_sums(8, 2))),
          lowered(in_rounds(full, allreduce(8, 2), tree_sums(8, 2, true))),
          lowered(combined(load_topology("dgx1"), Collective::allreduce, 2)),
          lowered(combined(uneven_ring(), Collective::allreduce, 3)),
          lowered(combined(uneven_ring(), Collective::reduce_scatter, 3)),
          lowered(in_rounds(full, make_demand(Collective::reduce, 8 * kMB, 8, 3), tree_sums(8, 3, false)))};
}

bool accepted(const Program& program, std::string* why = nullptr) {
  const xmlcheck::CheckResult result =
      xmlcheck::check(program, {.executor = &msccl::find_executor("msccl"), .fifo_depth = 1'000'000});
  if (why) *why = text_of(result);
  return result.valid();
}

ThreadBlock& tb_of(Program& program, std::size_t g, std::size_t t) {
  return program.gpus[g].tbs[t];
}

/// Takes out one wait: the dependency of step `s`; if it is a nop, the whole step. Where nops stand before a
/// step, one of them goes and the step carries its dependency, so that the structure stays right.
Program without_wait(Program program, std::size_t g, std::size_t t, std::size_t s) {
  auto& steps = tb_of(program, g, t).steps;
  const bool is_nop = steps[s].type == StepType::nop;
  const bool has_nop = !is_nop && s > 0 && steps[s - 1].type == StepType::nop;
  if (!is_nop && !has_nop) {
    steps[s].dependency.reset();
    return program;
  }
  const std::size_t removed = is_nop ? s : s - 1;
  if (has_nop) steps[s].dependency = steps[s - 1].dependency;
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(removed));
  for (ThreadBlock& tb : program.gpus[g].tbs) {
    for (Step& step : tb.steps) {
      if (!step.dependency || step.dependency->tb != static_cast<int>(t)) continue;
      if (step.dependency->step > static_cast<int>(removed)) --step.dependency->step;
    }
  }
  return program;
}

void expect_every_wait_needed(const std::vector<Program>& programs) {
  int all_waits = 0;
  for (const Program& program : programs) {
    ASSERT_TRUE(accepted(program));
    int waits = 0;
    for (std::size_t g = 0; g < program.gpus.size(); ++g) {
      for (std::size_t t = 0; t < program.gpus[g].tbs.size(); ++t) {
        const auto& steps = program.gpus[g].tbs[t].steps;
        for (std::size_t s = 0; s < steps.size(); ++s) {
          if (!steps[s].dependency) continue;
          ++waits;
          std::string why;
          const std::string where =
              msccl::place(static_cast<int>(g), static_cast<int>(t), static_cast<int>(s));
          EXPECT_FALSE(accepted(without_wait(program, g, t, s), &why)) << where;
          EXPECT_NE(why.find("neither waits for the other"), std::string::npos) << where << ": " << why;
        }
      }
    }
    all_waits += waits;
    std::cout << program.name << ": " << waits << " waits, each needed\n";
  }
  EXPECT_GT(all_waits, 100);
}

TEST(XmlMutations, EveryWaitIsNeeded) {
  expect_every_wait_needed(programs());
}
TEST(XmlMutations, EveryWaitOfSumsIsNeeded) {
  expect_every_wait_needed(combining_programs());
}

/// Changes a program somewhere; may leave it as it is.
class Mutator {
 public:
  Mutator(Program& program, Random& random) : program_(program), random_(random) {}

  void mutate() {
    g_ = random_.below(program_.gpus.size());
    t_ = random_.below(gpu().tbs.size());
    if (tb().steps.empty()) return;
    s_ = random_.below(tb().steps.size());
    switch (random_.below(15)) {
      case 0:
        return std::swap(step(), tb().steps[random_.below(tb().steps.size())]);
      case 1:
        return shift(step().src.offset);
      case 2:
        return shift(step().dst.offset);
      case 3:
        return shift(step().count);
      case 4:
        return step().dependency.reset();
      case 5:
        step().dependency = Dependency{.tb = pick(gpu().tbs.size()), .step = pick(6)};
        return;
      case 6:
        tb().steps.erase(tb().steps.begin() + static_cast<std::ptrdiff_t>(s_));
        return;
      case 7:
        tb().steps.insert(tb().steps.begin() + static_cast<std::ptrdiff_t>(s_), Step(step()));
        return;
      case 8:
        tb().send_peer = pick(program_.gpus.size() + 1) - 1;
        return;
      case 9:
        tb().recv_peer = pick(program_.gpus.size() + 1) - 1;
        return;
      case 10:
        step().type = static_cast<StepType>(random_.below(9));
        return;
      case 11:
        step().src.buffer = static_cast<Buffer>(random_.below(3));
        return;
      case 12:
        step().dst.buffer = static_cast<Buffer>(random_.below(3));
        return;
      case 13:
        return both_ends();
      default:
        return std::swap(tb().steps, gpu().tbs[random_.below(gpu().tbs.size())].steps);
    }
  }

 private:
  Gpu& gpu() { return program_.gpus[g_]; }
  ThreadBlock& tb() { return gpu().tbs[t_]; }
  Step& step() { return tb().steps[s_]; }
  int pick(std::size_t n) { return static_cast<int>(random_.below(n)); }
  void shift(int& value) { value += random_.below(2) == 0 ? 1 : -1; }

  /// The same wrong place, or number of chunks, where it is sent and where it is received.
  void both_ends() {
    const int peer = tb().send_peer;
    if (peer < 0) return;
    const bool count = random_.below(2) == 0;
    const int by = random_.below(2) == 0 ? 1 : -1;
    const auto nth = [&](ThreadBlock& block, bool sending) -> Step* {
      std::size_t left = s_;
      for (Step& other : block.steps) {
        const bool matches = sending ? msccl::sends(other.type) : msccl::receives(other.type);
        if (matches && left-- == 0) return &other;
      }
      return nullptr;
    };
    for (ThreadBlock& other : program_.gpus[static_cast<std::size_t>(peer)].tbs) {
      if (other.recv_peer != static_cast<int>(g_) || other.channel != tb().channel) continue;
      Step* sent = nth(tb(), true);
      Step* received = nth(other, false);
      if (!sent || !received) return;
      (count ? sent->count : sent->src.offset) += by;
      (count ? received->count : received->dst.offset) += by;
    }
  }

  Program& program_;
  Random& random_;
  std::size_t g_ = 0, t_ = 0, s_ = 0;
};

/// Whether one of several runs ends differently, or not at all.
bool changes_the_result(const Program& program, const Outputs& right, Random& random) {
  constexpr int kRuns = 12;
  for (int k = 0; k < kRuns; ++k) {
    const auto outputs = run_at_random(program, random);
    if (!outputs || *outputs != right) return true;
  }
  return false;
}

void expect_refused_where_the_result_changes(std::vector<Program> originals) {
  constexpr int kWanted = 1000;
  Random random(20240811);
  int changed = 0, accepted_unchanged = 0, refused_unchanged = 0;
  std::vector<Outputs> right;
  for (Program& program : originals) {
    // Dependencies may point anywhere without being refused for it.
    for (Gpu& gpu : program.gpus) {
      for (ThreadBlock& tb : gpu.tbs) {
        for (Step& step : tb.steps) step.has_dependents = true;
      }
    }
    ASSERT_TRUE(accepted(program));
    right.push_back(run_at_random(program, random).value());
    ASSERT_FALSE(changes_the_result(program, right.back(), random));
  }
  for (int trial = 0; changed < kWanted; ++trial) {
    ASSERT_LT(trial, 10 * kWanted);
    const std::size_t which = random.below(originals.size());
    Program program = originals[which];
    Mutator(program, random).mutate();
    const bool is_accepted = accepted(program);
    if (changes_the_result(program, right[which], random)) {
      ++changed;
      ASSERT_FALSE(is_accepted) << "trial " << trial << " of program " << which;
    } else {
      ++(is_accepted ? accepted_unchanged : refused_unchanged);
    }
  }
  std::cout << changed << " that change the result, all refused; of the others " << accepted_unchanged
            << " accepted and " << refused_unchanged << " refused\n";
  EXPECT_GT(accepted_unchanged, 0);
}

TEST(XmlMutations, NoneThatChangesTheResultIsAccepted) {
  expect_refused_where_the_result_changes(programs());
}
TEST(XmlMutations, NoneThatChangesASumIsAccepted) {
  expect_refused_where_the_result_changes(combining_programs());
}

}  // namespace
}  // namespace rondo::test::test_mutations
