#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "findings_text.hpp"

/// Programs that combine data, and rooted ones.
namespace rondo::xmlcheck::test_check_reductions {
namespace {

using namespace msccl;

Step reducing(StepType type, Range src, Range dst = {}) {
  return {.type = type, .src = src, .dst = dst, .count = 1};
}

/// ReduceScatter, then (for AllReduce) AllGather of the sums on a one-way ring of three.
Program ring_reduction(Collective coll) {
  Program program = empty_program(coll, 3, 3);
  const bool all = coll == *find_collective("allreduce");
  for (int g = 0; g < 3; ++g) {
    const int next = (g + 1) % 3, before = (g + 2) % 3;
    Gpu& gpu = program.gpus[static_cast<std::size_t>(g)];
    gpu = {.input_chunks = 3, .output_chunks = all ? 3 : 1};
    ThreadBlock ring = {.send_peer = next, .recv_peer = before};
    // Part p starts at GPU p + 1, gathers p + 2 and ends at p.
    ring.steps = {send(in(before)), reducing(StepType::receive_reduce_send, in(next))};
    if (all) {
      ring.steps.push_back(reducing(StepType::receive_reduce_copy_send, in(g), out(g)));
      ring.steps.push_back(pass_on(out(before)));
      ring.steps.push_back(receive(out(next)));
    } else {
      ring.steps.push_back(reducing(StepType::receive_reduce_copy, in(g), out(0)));
    }
    gpu.tbs = {ring};
  }
  return program;
}

TEST(CheckXmlReductions, RingsReduce) {
  for (const Collective coll : {*find_collective("reduce_scatter"), *find_collective("allreduce")}) {
    const CheckResult result = check(ring_reduction(coll), {.executor = &find_executor("msccl")});
    EXPECT_TRUE(result.valid()) << text_of(result);
  }
}

TEST(CheckXmlReductions, EverySummandCountsOnce) {
  Program program = ring_reduction(*find_collective("reduce_scatter"));
  program.gpus[0].tbs[0].steps[1].src = in(0);
  const CheckResult result = check(program, {});
  EXPECT_NE(text_of(result).find("ends with the sum of 3 chunks"), std::string::npos) << text_of(result);

  Program twice = empty_program(*find_collective("allreduce"), 1, 1);
  twice.gpus[0] = {.input_chunks = 1,
                   .output_chunks = 1,
                   .tbs = {{.steps = {copy(in(0), out(0)), reducing(StepType::reduce, in(0), out(0))}}}};
  EXPECT_NE(text_of(check(twice, {})).find("2 times i[0] of gpu 0"), std::string::npos);
  twice.gpus[0].tbs[0].steps.pop_back();
  EXPECT_TRUE(check(twice, {}).valid());
}

TEST(CheckXmlReductions, LocalSumsReadWhatTheyAddTo) {
  Program program = empty_program(*find_collective("reduce"), 2, 1);
  program.gpus[0] = {
      .input_chunks = 1,
      .output_chunks = 1,
      .scratch_chunks = 1,
      .tbs = {{.recv_peer = 1, .steps = {awaited(receive(scratch(0)))}},
              {.steps = {copy(in(0), out(0)), after(reducing(StepType::reduce, scratch(0), out(0)), 0, 0)}}}};
  program.gpus[1] = {.input_chunks = 1, .tbs = {{.send_peer = 0, .steps = {send(in(0))}}}};
  const CheckResult result = check(program, {});
  EXPECT_TRUE(result.valid()) << text_of(result);
  EXPECT_EQ(result.root, 0);
  program.gpus[0].tbs[1].steps.erase(program.gpus[0].tbs[1].steps.begin());
  EXPECT_NE(text_of(check(program, {})).find("reads o[0], which nothing has written"), std::string::npos);
}

TEST(CheckXmlReductions, FindsTheRoot) {
  Program program = empty_program(Collective::broadcast, 3, 1);
  program.gpus[2] = {.input_chunks = 1,
                     .output_chunks = 1,
                     .tbs = {{.send_peer = 0, .steps = {send(in(0))}}, {.steps = {copy(in(0), out(0))}}}};
  program.gpus[0] = {.output_chunks = 1,
                     .tbs = {{.send_peer = 1, .recv_peer = 2, .steps = {pass_on(out(0))}}}};
  program.gpus[1] = {.output_chunks = 1, .tbs = {{.recv_peer = 0, .steps = {receive(out(0))}}}};
  const CheckResult result = check(program, {.executor = &find_executor("msccl")});
  EXPECT_TRUE(result.valid()) << text_of(result);
  EXPECT_EQ(result.root, 2);
  program.gpus[1].input_chunks = 1;
  program.gpus[1].tbs.push_back({.steps = {after(copy(in(0), out(0)), 0, 0)}});
  program.gpus[1].tbs[0].steps[0].has_dependents = true;
  EXPECT_NE(text_of(check(program, {})).find("o[0] ends with i[0] of gpu 1"), std::string::npos);
}

}  // namespace
}  // namespace rondo::xmlcheck::test_check_reductions
