// Schedules of which each rank holds a part: the replay, the merged list and the search are those of one rank
// that has everything.

#include "rondo/pipeline/dealt_schedule.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "expect_error.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/parallel/messages.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "same_sends.hpp"
#include "topologies.hpp"

namespace rondo::dealt_schedule_test {
namespace {

std::shared_ptr<const Communicator> world() {
  return make_world_communicator();
}

/// AllGather of 1 MB a GPU around a ring, in rounds: all GPUs send on at once.
std::vector<Send> around_the_ring(int gpus) {
  std::vector<Send> sends;
  for (int step = 0; step + 1 < gpus; ++step) {
    const double start = 1001.0 * step;
    for (int g = 0; g < gpus; ++g) {
      const int origin = (g + gpus - step) % gpus;
      sends.push_back({ChunkId{origin}, LinkId{g}, start, start + 1000, start + 1001});
    }
  }
  return sends;
}

Demand of_ring(int gpus) {
  return make_demand(Collective::allgather, gpus * kMB, static_cast<std::size_t>(gpus), 1);
}

std::vector<Send> own_part(const std::vector<Send>& sends, std::size_t num_chunks,
                           const Communicator& ranks) {
  std::vector<Send> own = sends;
  const ChunkRange chunks = chunks_of_rank(num_chunks, ranks.rank(), ranks.size());
  std::erase_if(own, [&](const Send& send) { return !chunks.contains(send.chunk); });
  return own;
}

/// All sends as the root sees them, on every rank.
std::vector<Send> merged(const Communicator& ranks, const std::vector<Send>& own) {
  const Bytes bytes = on_root_with_sends(ranks, own, [](const NextSends& next) {
    MessageWriter message;
    for (auto sends = next(); !sends.empty(); sends = next())
      for (const Send& send : sends) message.put(send);
    return message.take();
  });
  std::vector<Send> sends;
  MessageReader reader(bytes);
  for (std::size_t n = bytes.size() / sizeof(Send); n > 0; --n) sends.push_back(reader.get<Send>());
  return sends;
}

constexpr int kGpus = 240;  // 57,360 sends: several messages of each rank

TEST(DealtSchedule, EndsWhenTheReplaySays) {
  const auto ranks = world();
  const auto ring = one_way_ring(kGpus);
  const Demand demand = of_ring(kGpus);
  const std::vector<Send> sends = around_the_ring(kGpus);
  const ReplayResult whole = replay(*ring, demand, sends);
  ASSERT_TRUE(whole.valid()) << *whole.violation;
  const std::vector<Send> own = own_part(sends, demand.num_chunks(), *ranks);
  EXPECT_EQ(dealt_finish_us(*ranks, *ring, demand, own, "the test"), whole.finish_us);
}

void expect_refused(const std::vector<Send>& sends, const std::string& why) {
  const auto ranks = world();
  const auto ring = one_way_ring(kGpus);
  const Demand demand = of_ring(kGpus);
  const ReplayResult whole = replay(*ring, demand, sends);
  ASSERT_FALSE(whole.valid());
  EXPECT_NE(whole.violation->find(why), std::string::npos) << *whole.violation;
  const std::vector<Send> own = own_part(sends, demand.num_chunks(), *ranks);
  try {
    dealt_finish_us(*ranks, *ring, demand, own, "the test");
    ADD_FAILURE() << "not refused: " << why;
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "the replay refuses the schedule of the test: " + *whole.violation + "; please report it");
  }
}

TEST(DealtSchedule, IsRefusedWithTheWordsOfTheReplay) {
  const std::vector<Send> sends = around_the_ring(kGpus);
  std::vector<Send> too_early = sends;
  for (double* us : {&too_early[700].start_us, &too_early[700].end_us, &too_early[700].arrival_us})
    *us -= 0.5;
  expect_refused(too_early, "holds the chunk only from");

  // Chunks of two ranks, a half of the ring apart, on one link at once.
  std::vector<Send> overfull = sends;
  const std::size_t last = overfull.size() - 1;
  for (std::size_t s = 0; s < kGpus; ++s) {
    Send& late = overfull[last - s];
    late.start_us += 500;
    late.end_us += 500;
    late.arrival_us += 500;
  }
  overfull.push_back(overfull[last]);
  overfull.back().chunk = ChunkId{(overfull[last].chunk.value + kGpus / 2) % kGpus};
  expect_refused(overfull, "rule 1");

  std::vector<Send> undelivered = sends;
  undelivered.pop_back();
  expect_refused(undelivered, "never arrives");

  std::vector<Send> ill_formed = sends;
  ill_formed[5000].end_us = -1;
  expect_refused(ill_formed, "times are finite and not negative");
}

TEST(DealtSchedule, IsDealtAndMerged) {
  const auto ranks = world();
  const std::vector<Send> sends = around_the_ring(kGpus);
  const int holder = ranks->size() - 1;
  std::vector<Send> own = dealt(*ranks, ranks->rank() == holder ? sends : std::vector<Send>(), holder, kGpus);
  expect_same_sends({own, 0}, {own_part(sends, kGpus, *ranks), 0});
  expect_same_sends({merged(*ranks, own), 0}, {sends, 0});
}

TEST(DealtSchedule, AFailureOfTheRootIsEverybodys) {
  const auto ranks = world();
  const std::vector<Send> own = own_part(around_the_ring(kGpus), kGpus, *ranks);
  const auto fails = [&](int calls) {
    on_root_with_sends(*ranks, own, [&](const NextSends& next) -> Bytes {
      for (int i = 0; i < calls; ++i) next();
      throw Error(ExitCode::cannot_create, "the disk is full");
    });
  };
  for (const int calls : {0, 1, 3})
    expect_error(ExitCode::cannot_create, {"the disk is full"}, [&] { fails(calls); });
}

/// What the search gives in parts is what it gives whole.
void expect_dealt(const std::shared_ptr<const Topology>& topology, const std::string& engine) {
  const auto ranks = world();
  SolveOptions options;
  options.engine = engine;
  options.chunks = 12'600;  // of a ring of eight: 705,600 sends, more than local search takes
  options.gap = 0.5;
  const Problem problem{topology, make_demand(Collective::allgather, 1e9, topology->num_gpus(), 1), options};
  RunContext context{*ranks};
  const SynthesisResult whole = synthesize(problem, context);
  EXPECT_FALSE(whole.dealt);
  context.deals = true;
  const SynthesisResult result = synthesize(problem, context);
  ASSERT_TRUE(result.dealt);
  EXPECT_EQ(result.dealt->num_sends, whole.proven.schedule.sends.size());
  EXPECT_EQ(result.proven.schedule.finish_us, whole.proven.schedule.finish_us);
  EXPECT_EQ(result.engine, whole.engine);
  EXPECT_EQ(result.by_chunks.begin()->second.most_sends_on_a_link,
            whole.by_chunks.begin()->second.most_sends_on_a_link);
  EXPECT_TRUE(std::ranges::equal(merged(*ranks, result.proven.schedule.sends), whole.proven.schedule.sends,
                                 [](const Send& a, const Send& b) {
                                   return a.chunk == b.chunk && a.link == b.link &&
                                          a.start_us == b.start_us && a.end_us == b.end_us &&
                                          a.arrival_us == b.arrival_us;
                                 }));
}

TEST(DealtSchedule, OfASymmetricFabric) {
  expect_dealt(generated("ring", {{"gpus", "8"}}), "queue");
}

TEST(DealtSchedule, OfADamagedFabric) {
  expect_dealt(damaged(*generated("ring", {{"gpus", "8"}}), 0.1, 1), "queue");
}

// What comes second rests on the sends of what comes first.
TEST(DealtSchedule, HalvesOfAllReduceAreWhole) {
  const auto ranks = world();
  if (ranks->size() != 2) GTEST_SKIP() << "a quarter of a minute, once";
  SolveOptions options;
  options.engine = "queue";
  options.chunks = 8 * 12'600;
  options.gap = 0.5;
  const auto topology = generated("ring", {{"gpus", "8"}});
  const Problem problem{topology, make_demand(Collective::allreduce, 1e9, 8, 1), options};
  RunContext context{*ranks};
  context.deals = true;
  const SynthesisResult result = synthesize(problem, context);
  EXPECT_FALSE(result.dealt);
  EXPECT_TRUE(result.engine.starts_with("halves/queue")) << result.engine;
  EXPECT_LE(result.gap, 0.01);
}

}  // namespace
}  // namespace rondo::dealt_schedule_test
