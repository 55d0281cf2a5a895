#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "findings_text.hpp"
#include "rondo/core/error.hpp"

/// Every kind of finding, on programs small enough to be followed by hand.
namespace rondo::xmlcheck::test_check {
namespace {

using namespace msccl;

CheckResult checked(const Program& program, const char* executor = "msccl") {
  return check(program, {.executor = &find_executor(executor)});
}

void expect_valid(const Program& program, const char* executor = "msccl") {
  const CheckResult result = checked(program, executor);
  EXPECT_TRUE(result.valid()) << text_of(result);
}

void expect_finding(const Program& program, const std::string& where, const std::string& what,
                    const char* executor = "msccl") {
  const std::string text = text_of(checked(program, executor));
  EXPECT_NE(text.find(where), std::string::npos) << where << " is not in: " << text;
  EXPECT_NE(text.find(what), std::string::npos) << what << " is not in: " << text;
}

ThreadBlock& tb(Program& program, std::size_t gpu, std::size_t id) {
  return program.gpus[gpu].tbs[id];
}
Step& step(Program& program, std::size_t gpu, std::size_t id, std::size_t s) {
  return tb(program, gpu, id).steps[s];
}

TEST(CheckXml, AcceptsWhatIsRight) {
  for (const char* executor : {"msccl", "msccl-executor-nccl"}) {
    expect_valid(ring_allgather(2), executor);
    expect_valid(ring_allgather(5), executor);
    expect_valid(relayed_alltoall(), executor);
  }
}

TEST(CheckXml, FewStepsMayNotAskForMuchMemory) {
  const auto expect_beyond = [](const Program& program) {
    try {
      check(program, {});
      ADD_FAILURE() << "checked";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::unavailable) << error.what();
    }
  };
  Program scratch = ring_allgather(2);
  scratch.gpus[0].scratch_chunks = 2'000'000;
  expect_beyond(scratch);
  Program loop = ring_allgather(2);
  loop.coll = *find_collective("allreduce");  // whose buffers hold a whole loop
  loop.chunks_per_loop = 2'000'000'000;
  for (Gpu& gpu : loop.gpus) gpu = {};
  expect_beyond(loop);
  // As many as steps of executors could fill are checked.
  scratch.gpus[0].scratch_chunks = 900'000;
  expect_valid(scratch, "msccl");
}

TEST(CheckXml, InPlaceInputsArePartOfTheOutput) {
  Program program = ring_allgather(3);
  program.in_place = true;
  expect_valid(program);  // the own part is copied onto itself
  program.out_of_place = false;
  for (std::size_t g = 0; g < 3; ++g) {
    program.gpus[g].tbs.pop_back();
    step(program, g, 0, 0).src = out(static_cast<int>(g));
    program.gpus[g].input_chunks = 0;
  }
  expect_valid(program);
  // Without the copy it is no program for out of place.
  program.out_of_place = true;
  expect_finding(program, "gpu 0 tb 0 step 0", "reads o[0], which nothing has written");
}

TEST(CheckXml, FindsWrongStructure) {
  using Change = void (*)(Program&);
  const struct {
    Change change;
    const char *where, *what;
  } cases[] = {
      {[](Program& p) { p.out_of_place = false; }, "algo", "both 0"},
      {[](Program& p) { p.max_bytes = 1, p.min_bytes = 2; }, "algo", "maxBytes is 1, less than minBytes 2"},
      {[](Program& p) { p.chunks_per_loop = 4; }, "algo", "do not share evenly"},
      {[](Program& p) { p.gpus[1].input_chunks = 2; }, "gpu 1", "i_chunks is 2"},
      {[](Program& p) { p.gpus[1].output_chunks = 6; }, "gpu 1", "o_chunks is 6"},
      {[](Program& p) { tb(p, 1, 0).send_peer = 3; }, "gpu 1 tb 0", "send is 3, but there are GPUs 0 to 2"},
      {[](Program& p) { tb(p, 1, 0).recv_peer = 1; }, "gpu 1 tb 0", "the GPU itself"},
      {[](Program& p) { tb(p, 1, 0).channel = 1; }, "gpu 1 tb 0", "chan is 1"},
      {[](Program& p) { tb(p, 1, 0).channel = -1; }, "gpu 1 tb 0", "chan is -1"},
      {[](Program& p) { tb(p, 1, 1).send_peer = 2; }, "gpu 1 tb 1", "tb 0 owns the connection to gpu 2"},
      {[](Program& p) { tb(p, 1, 1).recv_peer = 0; }, "gpu 1 tb 1", "tb 0 owns the connection from gpu 0"},
      {[](Program& p) { tb(p, 1, 0).send_peer = -1; }, "gpu 1 tb 0 step 0", "type s sends"},
      {[](Program& p) { tb(p, 1, 0).recv_peer = -1; }, "gpu 1 tb 0 step 1", "type rcs receives"},
      {[](Program& p) { step(p, 1, 1, 0).count = 0; }, "gpu 1 tb 1 step 0", "cnt is 0"},
      {[](Program& p) { step(p, 1, 0, 2).dst = out(3); }, "gpu 1 tb 0 step 2",
       "1 chunks from o[3], but o has 3"},
      {[](Program& p) { step(p, 1, 0, 0).src = scratch(0); }, "gpu 1 tb 0 step 0", "s has 0"},
      {[](Program& p) { step(p, 1, 0, 0).count = 2; }, "gpu 1 tb 0 step 0", "2 chunks from i[0]"},
      {[](Program& p) { step(p, 1, 1, 0) = after(step(p, 1, 1, 0), 2, 0); }, "gpu 1 tb 1 step 0",
       "the GPU has 2 threadblocks"},
      {[](Program& p) { step(p, 1, 1, 0) = after(step(p, 1, 1, 0), 0, 9); }, "gpu 1 tb 1 step 0",
       "tb 0 has 3 steps"},
      {[](Program& p) { step(p, 1, 1, 0) = after(step(p, 1, 1, 0), 1, 0); }, "gpu 1 tb 1 step 0",
       "its own threadblock"},
      {[](Program& p) { step(p, 1, 1, 0) = after(step(p, 1, 1, 0), 0, 2); }, "gpu 1 tb 1 step 0",
       "whose hasdep is 0"},
      {[](Program& p) { tb(p, 1, 1).steps.push_back(after(nop(), 0, 2)); }, "gpu 1 tb 1 step 1",
       "a nop at the end"},
      {[](Program& p) { tb(p, 1, 1).steps.insert(tb(p, 1, 1).steps.begin(), nop()); }, "gpu 1 tb 1 step 0",
       "a nop without a dependency"},
      {[](Program& p) {
         step(p, 1, 0, 2).has_dependents = true;
         tb(p, 1, 1).steps.insert(tb(p, 1, 1).steps.begin(), after(nop(), 0, 2));
       },
       "gpu 1 tb 1 step 0", "step 1, which has to carry a dependency itself"},
  };
  for (std::size_t c = 0; c < std::size(cases); ++c) {
    SCOPED_TRACE(c);
    Program program = ring_allgather(3);
    cases[c].change(program);
    expect_finding(program, cases[c].where, cases[c].what);
  }
}

TEST(CheckXml, OverlappingCopiesAreRefused) {
  Program program = ring_allgather(3);
  tb(program, 0, 1).steps.push_back(copy(out(0), out(1), 2));
  expect_finding(program, "gpu 0 tb 1 step 1", "overlap");
}

TEST(CheckXml, PairsSendsAndReceivesInOrder) {
  Program missing = ring_allgather(3);
  tb(missing, 0, 0).steps.pop_back();
  expect_finding(missing, "gpu 2 tb 0 step 1", "sends number 1 of gpu 2 to gpu 0 on channel 0");

  Program unsent = relayed_alltoall();
  tb(unsent, 0, 0).steps.pop_back();
  expect_finding(unsent, "gpu 1 tb 1 step 2", "receives number 2 of gpu 0 to gpu 1 on channel 0");

  Program count = relayed_alltoall();
  step(count, 0, 0, 0) = send(in(1), 2);
  expect_finding(count, "gpu 1 tb 1 step 0", "receives 1 chunks, but gpu 0 tb 0 step 0 sends 2");
}

TEST(CheckXml, FindsStepsThatWaitForThemselves) {
  Program cyclic = relayed_alltoall();
  step(cyclic, 0, 1, 0) = after(step(cyclic, 0, 1, 0), 0, 2);
  step(cyclic, 0, 0, 2).has_dependents = true;
  expect_finding(cyclic, "gpu 0 tb", "waits for itself");

  // Everybody receives before sending.
  Program ring = ring_allgather(3);
  for (std::size_t g = 0; g < 3; ++g) std::swap(step(ring, g, 0, 0), step(ring, g, 0, 2));
  expect_finding(ring, "gpu 0 tb 0 step 2", "waits for itself");
}

TEST(CheckXml, ConnectionsHoldTwoSends) {
  // GPU 0 sends three times before it receives; GPU 1 sends first, which GPU 0 takes only after that.
  Program program = empty_program(Collective::alltoall, 2, 6);
  for (int g = 0; g < 2; ++g) {
    Gpu& gpu = program.gpus[static_cast<std::size_t>(g)];
    gpu = {.input_chunks = 6, .output_chunks = 6};
    ThreadBlock both = {.send_peer = 1 - g, .recv_peer = 1 - g};
    for (int k = 0; k < 3; ++k) both.steps.push_back(send(in(3 * (1 - g) + k)));
    for (int k = 0; k < 3; ++k) both.steps.push_back(receive(out(3 * (1 - g) + k)));
    gpu.tbs = {both, {.steps = {copy(in(3 * g), out(3 * g), 3)}}};
  }
  expect_finding(program, "gpu 0 tb 0 step", "needs the room that is made by");
  EXPECT_TRUE(check(program, {.fifo_depth = 3}).valid());
}

TEST(CheckXml, FindsRaces) {
  // The relay is sent before it is sure to be there.
  Program unordered = relayed_alltoall();
  step(unordered, 1, 0, 2).dependency.reset();
  expect_finding(unordered, "gpu 1 tb 0 step 2", "reads s[0], which gpu 1 tb 1 step 0 writes");

  // A chunk overwrites the relayed one while that may still be read.
  Program overwritten = relayed_alltoall();
  step(overwritten, 1, 1, 1).dst = scratch(0);
  expect_finding(overwritten, "gpu 1 tb", "and neither waits for the other");

  // A message orders as well as a dependency does: GPU 0 overwrites what it has sent to GPU 1 once GPU 1 has
  // answered.
  Program answered = empty_program(Collective::custom, 2, 1);
  answered.gpus[0] = {.input_chunks = 1, .scratch_chunks = 1};
  answered.gpus[1] = {.input_chunks = 1, .output_chunks = 1};
  answered.gpus[0].tbs = {{.send_peer = 1, .steps = {copy(in(0), scratch(0)), send(scratch(0))}},
                          {.recv_peer = 1, .steps = {receive(scratch(0))}}};
  answered.gpus[1].tbs = {{.recv_peer = 0, .steps = {awaited(receive(out(0)))}},
                          {.send_peer = 0, .steps = {after(send(in(0)), 0, 0)}}};
  expect_valid(answered);
  step(answered, 1, 1, 0).dependency.reset();
  expect_finding(answered, "gpu 0 tb", "writes s[0], which gpu 0 tb");
}

TEST(CheckXml, InPlaceMakesRaces) {
  // Out of place the input stays as it is; in place the first arrival overwrites what is still to be sent.
  Program program = empty_program(Collective::alltoall, 2, 2);
  for (int g = 0; g < 2; ++g) {
    program.gpus[static_cast<std::size_t>(g)] = {
        .input_chunks = 2,
        .output_chunks = 2,
        .tbs = {{.send_peer = 1 - g, .steps = {send(in(1 - g))}},
                {.recv_peer = 1 - g, .steps = {receive(out(1 - g)), copy(in(g), out(g))}}}};
  }
  expect_valid(program);
  program.in_place = true;
  expect_finding(program, "gpu 0 tb", "(in place)");
}

TEST(CheckXml, FindsWrongResults) {
  Program offset = ring_allgather(3);
  step(offset, 2, 0, 2).dst = out(2);  // over its own part, or under it
  expect_finding(offset, "gpu 2 tb", "neither waits for the other");

  Program swapped = ring_allgather(4);
  std::swap(step(swapped, 2, 0, 1).dst, step(swapped, 2, 0, 2).dst);
  expect_finding(swapped, "gpu 2", "o[0] ends with i[0] of gpu 1, but allgather asks for i[0] of gpu 0");

  Program uncopied = ring_allgather(3);
  uncopied.gpus[1].tbs.pop_back();
  expect_finding(uncopied, "gpu 1", "o[1] ends with nothing");

  Program both_ends = relayed_alltoall();
  std::swap(step(both_ends, 0, 0, 0).src, step(both_ends, 0, 0, 1).src);
  expect_finding(both_ends, "gpu 1", "but alltoall asks for");

  Program unwritten = relayed_alltoall();
  unwritten.gpus[0].scratch_chunks = 2;
  step(unwritten, 0, 0, 2).src = scratch(1);
  expect_finding(unwritten, "gpu 0 tb 0 step 2", "reads s[1], which nothing has written yet");
}

TEST(CheckXml, HoldsProgramsAgainstTheExecutor) {
  Program custom = empty_program(Collective::custom, 2, 1);
  expect_valid(custom);
  expect_finding(custom, "algo", "coll is 'custom', which msccl-executor-nccl does not know",
                 "msccl-executor-nccl");

  Program spelled = ring_allgather(2);
  spelled.coll = *find_collective("reduce_scatter");
  spelled.coll_spelling = "reduce_scatter";
  expect_finding(spelled, "algo", "spells 'reducescatter'", "msccl-executor-nccl");

  Program steps = ring_allgather(2);
  while (tb(steps, 0, 1).steps.size() < 65) tb(steps, 0, 1).steps.push_back(copy(in(0), out(0)));
  expect_valid(steps);
  expect_finding(steps, "gpu 0 tb 1", "65 steps, but msccl-executor-nccl takes at most 64",
                 "msccl-executor-nccl");

  Program blocks = ring_allgather(2);
  blocks.gpus[0].tbs.resize(217);
  expect_finding(blocks, "gpu 0", "217 threadblocks, but msccl takes at most 216");

  Program channels = ring_allgather(2);
  channels.num_channels = 33;
  expect_finding(channels, "algo", "33 channels");

  Program peers = ring_allgather(34);
  for (int p = 2; p < 34; ++p) peers.gpus[0].tbs.push_back({.send_peer = p});
  expect_finding(peers, "gpu 0", "33 connections out on channel 0");

  Program count = ring_allgather(2);
  count.chunks_per_loop = 144;
  for (std::size_t g = 0; g < 2; ++g) {
    count.gpus[g].input_chunks = 72;
    count.gpus[g].output_chunks = 144;
    for (ThreadBlock& block : count.gpus[g].tbs) {
      for (Step& s : block.steps) {
        s.count = 72;
        s.dst.offset *= 72;
      }
    }
  }
  expect_finding(count, "gpu 0 tb 0 step 0", "72 chunks in a step");
  EXPECT_TRUE(check(count, {}).valid());

  Program late = ring_allgather(2);
  late.gpus[0].tbs.resize(200);
  late.gpus[0].tbs.back().steps = {awaited(copy(in(0), out(0)))};
  step(late, 0, 1, 0) = after(step(late, 0, 1, 0), 199, 0);
  expect_finding(late, "gpu 0 tb 1 step 0", "199 as depid, but msccl takes at most 127");

  Program nodes = ring_allgather(2);
  for (int t = 0; t < 20; ++t) {
    nodes.gpus[0].tbs.push_back({});
    for (int s = 0; s < 205; ++s) nodes.gpus[0].tbs.back().steps.push_back(copy(in(0), out(0)));
  }
  expect_finding(nodes, "gpu 0", "XML nodes in its view");
}

TEST(CheckXml, CountsAllAndListsTheFirst) {
  Program program = ring_allgather(8);
  for (Gpu& gpu : program.gpus) gpu.tbs.pop_back();
  const CheckResult result = check(program, {.max_findings = 3});
  EXPECT_EQ(result.num_findings, 8U);
  EXPECT_EQ(result.findings.size(), 3U);
}

TEST(CheckXml, CustomDemandsAreCheckedWhereTheyAreKnown) {
  Program program = empty_program(Collective::custom, 2, 2);
  program.gpus[0] = {.input_chunks = 2, .tbs = {{.send_peer = 1, .steps = {send(in(0)), send(in(1))}}}};
  program.gpus[1] = {.output_chunks = 2,
                     .tbs = {{.recv_peer = 0, .steps = {receive(out(0)), receive(out(1))}}}};
  EXPECT_FALSE(check(program, {}).knows_result);
  const Demand demand(Collective::custom, 200, 2,
                      {{.origin = GpuId{0}, .bytes = 100, .destinations = {GpuId{1}}},
                       {.origin = GpuId{0}, .bytes = 100, .destinations = {GpuId{1}}}},
                      1);
  const CheckResult right = check(program, {.demand = &demand});
  EXPECT_TRUE(right.valid()) << text_of(right);
  EXPECT_TRUE(right.knows_result);
  std::swap(step(program, 1, 0, 0).dst, step(program, 1, 0, 1).dst);
  EXPECT_EQ(check(program, {.demand = &demand}).num_findings, 2U);
}

}  // namespace
}  // namespace rondo::xmlcheck::test_check
