#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/execution/execute.hpp"
#include "rondo/msccl/xml.hpp"

namespace rondo::execution::execution_test {
namespace {

/// A way of a chunk from GPU to GPU over fully connected GPUs, one step a microsecond from `start`.
struct Hop {
  int chunk, from, to, start;
};

/// Schedule by hand: every link of `full` has 1 GB/s and no latency, chunks have 1000 bytes.
ProvenSchedule by_hand(int gpus, Demand demand, const std::vector<Hop>& hops) {
  Topology topology = generate_topology(
      "full", {{"gpus", std::to_string(gpus)}, {"bandwidth_GBps", "1"}, {"latency_us", "0"}});
  Schedule schedule;
  for (const Hop& hop : hops) {
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      const Link& link = topology.links()[l];
      if (link.src.value != hop.from || link.dst.value != hop.to) continue;
      const double start = hop.start;
      schedule.sends.push_back({ChunkId(hop.chunk), LinkId(l), start, start + 1, start + 1});
      schedule.finish_us = std::max(schedule.finish_us, start + 1);
    }
  }
  canonicalise(schedule);
  return {std::move(topology), std::move(demand), std::move(schedule)};
}

/// AllGather over three GPUs round a ring: what arrives first goes on.
const std::vector<Hop> kRing = {{0, 0, 1, 0}, {1, 1, 2, 0}, {2, 2, 0, 0},
                                {0, 1, 2, 1}, {1, 2, 0, 1}, {2, 0, 1, 1}};

ProvenSchedule ring(const std::vector<Hop>& hops = kRing) {
  return by_hand(3, make_demand(Collective::allgather, 3000, 3, 1), hops);
}

ExecuteResult run(const Program& program, const ExecuteOptions& options = {}) {
  return execute(program, *make_world_communicator(), options);
}

/// The message of an Error(bad_data), which has to be the same on every rank.
std::string refusal(const std::function<void()>& work) {
  const auto world = make_world_communicator();
  std::string text;
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    text = error.what();
  }
  for (const Bytes& other : world->all_gather(to_bytes(text))) EXPECT_EQ(to_text(other), text);
  EXPECT_FALSE(text.empty()) << "nothing was refused";
  return text;
}

std::string refusal_of(const Program& program, const ExecuteOptions& options = {}) {
  return refusal([&] { run(program, options); });
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

// ---- Schedules

TEST(ExecuteSchedule, AllGatherEndsAsDefined) {
  for (const double bytes : {3.0, 100.0, 300'000.0}) {
    const Program program = from_schedule(ring(), bytes);
    const ExecuteResult result = run(program, {.repeat = 3});
    EXPECT_EQ(result.messages, 3 * 6);
    EXPECT_EQ(result.bytes, 3 * 6 * static_cast<std::int64_t>(program.size_bytes / 3));
    EXPECT_GE(static_cast<double>(program.size_bytes), bytes);
    EXPECT_LT(static_cast<double>(program.size_bytes), bytes + 3);
  }
}

TEST(ExecuteSchedule, AllToAllRelays) {
  // Contributions 0 -> 1, 0 -> 2, 1 -> 0, 1 -> 2, 2 -> 0, 2 -> 1; the second goes over GPU 1.
  const Demand demand = make_demand(Collective::alltoall, 3000, 3, 1);
  const std::vector<Hop> hops = {{0, 0, 1, 0}, {1, 0, 1, 1}, {1, 1, 2, 2}, {2, 1, 0, 0},
                                 {3, 1, 2, 0}, {4, 2, 0, 0}, {5, 2, 1, 0}};
  EXPECT_EQ(run(from_schedule(by_hand(3, demand, hops), 30'000)).messages, 7);
}

TEST(ExecuteSchedule, RootedCollectives) {
  const auto direct = [](Collective collective, const std::vector<Hop>& hops) {
    run(from_schedule(by_hand(3, make_demand(collective, 3000, 3, 1, GpuId(1)), hops), 1000));
  };
  direct(Collective::broadcast, {{0, 1, 0, 0}, {0, 1, 2, 0}});
  direct(Collective::scatter, {{0, 1, 0, 0}, {1, 1, 2, 0}});
  direct(Collective::gather, {{0, 0, 1, 0}, {1, 2, 1, 0}});
}

TEST(ExecuteSchedule, ACustomDemandIsComparedWithItsOrigins) {
  const Demand demand(Collective::custom, 5000, 3,
                      {{.origin = GpuId(0), .bytes = 3000, .destinations = {GpuId(1), GpuId(2)}},
                       {.origin = GpuId(2), .bytes = 2000, .destinations = {GpuId(1)}}},
                      1);
  run(from_schedule(by_hand(3, demand, {{0, 0, 1, 0}, {0, 1, 2, 3}, {1, 2, 1, 0}}), 5000));
  expect_in("gpu 1: byte 3000 of the output is 0xa5 (never written, it seems)",
            refusal_of(from_schedule(by_hand(3, demand, {{0, 0, 1, 0}, {0, 1, 2, 3}}), 5000)));
}

TEST(ExecuteSchedule, ACopyThroughASwitchIsAMessageToEach) {
  TopologyData data{.name = "star", .nodes = {{}, {}, {}, {.kind = NodeKind::switch_}}};
  for (const auto& [src, dst] : {std::pair{0, 3}, {3, 1}, {3, 2}}) {
    data.links.push_back({.src = NodeId(src), .dst = NodeId(dst), .bandwidth_GBps = 1, .latency_us = 1});
  }
  const Demand demand = make_demand(Collective::broadcast, 1000, 3, 1);
  const Schedule schedule{.sends = {{ChunkId(0), LinkId(0), 0, 1, 2},
                                    {ChunkId(0), LinkId(1), 1, 2, 3},
                                    {ChunkId(0), LinkId(2), 1, 2, 3}},
                          .finish_us = 3};
  EXPECT_EQ(run(from_schedule({Topology(data), demand, schedule}, 1000)).messages, 2);
}

TEST(ExecuteSchedule, AMissingSendShowsInTheBytes) {
  std::vector<Hop> hops = kRing;
  hops.pop_back();  // chunk 2 never comes to GPU 1
  const std::string text = refusal_of(from_schedule(ring(hops), 3000));
  expect_in("gpu 1: byte 2000 of the output is 0xa5 (never written, it seems), but allgather asks for", text);
}

TEST(ExecuteSchedule, WhatIsNeverThereIsNotWaitedFor) {
  std::vector<Hop> hops = kRing;
  hops.erase(hops.begin());  // chunk 0 never comes to GPU 1, which is to send it on
  expect_in("chunk 0 from gpu 1 to gpu 2 (send) waits for data that never arrives",
            refusal_of(from_schedule(ring(hops), 3000)));
}

TEST(ExecuteSchedule, TooManyBytesAreRefused) {
  try {
    from_schedule(ring(), 1e9);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    expect_in("choose a smaller --bytes", error.what());
  }
}

// ---- MSCCL XML

std::string step(int s, const std::string& type, const std::string& src, const std::string& dst,
                 int count = 1, const std::string& dependency = "depid=\"-1\" deps=\"-1\"") {
  const auto end = [](const std::string& name, const std::string& place) {
    return name + "buf=\"" + place.substr(0, 1) + "\" " + name + "off=\"" + place.substr(1) + "\" ";
  };
  return "<step s=\"" + std::to_string(s) + "\" type=\"" + type + "\" " + end("src", src) + end("dst", dst) +
         "cnt=\"" + std::to_string(count) + "\" " + dependency + " hasdep=\"0\"/>";
}

std::string tb(int id, int send, int recv, const std::string& steps) {
  return "<tb id=\"" + std::to_string(id) + "\" send=\"" + std::to_string(send) + "\" recv=\"" +
         std::to_string(recv) + "\" chan=\"0\">" + steps + "</tb>";
}

Program xml(const std::string& coll, int chunks, const std::vector<std::string>& gpus, bool in_place = false,
            double bytes = 6000) {
  std::string text = "<algo name=\"t\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"" +
                     std::to_string(chunks) + "\" ngpus=\"" + std::to_string(gpus.size()) + "\" coll=\"" +
                     coll + "\" inplace=\"1\" outofplace=\"1\" minBytes=\"0\" maxBytes=\"0\">";
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    text += "<gpu id=\"" + std::to_string(g) + "\" i_chunks=\"" + std::to_string(chunks) + "\" o_chunks=\"" +
            std::to_string(chunks) + "\" s_chunks=\"1\">" + gpus[g] + "</gpu>";
  }
  return from_msccl(msccl::parse_xml(text + "</algo>"), bytes, in_place);
}

/// AllGather of two GPUs; `send_count` and `recv_offset` are there to be spoilt.
Program pair(const std::string& last_receive, const std::string& more = "") {
  return xml("allgather", 2,
             {tb(0, 1, 1, step(0, "s", "i0", "o0") + step(1, "r", "o1", "o1")) +
                  tb(1, -1, -1, step(0, "cpy", "i0", "o0")),
              tb(0, 0, 0, step(0, "s", "i0", "o1") + last_receive) +
                  tb(1, -1, -1, step(0, "cpy", "i0", "o1")) + more});
}

TEST(ExecuteXml, AllGatherEndsAsDefined) {
  EXPECT_EQ(run(pair(step(1, "r", "o0", "o0"))).messages, 2);
}

TEST(ExecuteXml, AWrongOffsetShowsInTheBytes) {
  expect_in("gpu 1: byte 0 of the output", refusal_of(pair(step(1, "r", "o1", "o1"))));
}

TEST(ExecuteXml, AWrongCountIsNamed) {
  expect_in("gpu 1 tb 0 step 1 receives 6000 bytes, but 3000 were sent",
            refusal_of(pair(step(1, "r", "o0", "o0", 2))));
}

TEST(ExecuteXml, AMessageThatNobodyTakesIsNamed) {
  expect_in("gpu 1 never receives 1 message(s) that gpu 0 sent to it", refusal_of(pair("")));
}

TEST(ExecuteXml, AnExtraReceiveIsADeadlock) {
  const std::string text = refusal_of(pair(step(1, "r", "o0", "o0") + step(2, "r", "o0", "o0")));
  expect_in("deadlock: 1 of 4 lanes cannot continue", text);
  expect_in("gpu 1 tb 0 step 2 waits for gpu 0 to send, which has no step left that does", text);
}

TEST(ExecuteXml, WhatCannotBeExecutedIsRefused) {
  const auto expect_refused = [](const std::string& part, const std::function<void()>& make) {
    expect_in(part, refusal(make));
  };
  expect_refused("gpu 1 tb 0 step 1: chunks 1 to 2 of buffer o, which has 2",
                 [] { pair(step(1, "r", "o1", "o1", 2)); });
  expect_refused("gpu 1 tb 2 step 0: tb 0 also receives from gpu 0",
                 [] { pair(step(1, "r", "o0", "o0"), tb(2, -1, 0, step(0, "r", "o0", "o0"))); });
  expect_refused("gpu 1 tb 2 step 0: depends on tb 7 step 0, which does not exist", [] {
    pair(step(1, "r", "o0", "o0"), tb(2, -1, -1, step(0, "nop", "o0", "o0", 1, "depid=\"7\" deps=\"0\"")));
  });
  expect_refused("the peer is 5, which is no gpu",
                 [] { pair(step(1, "r", "o0", "o0"), tb(2, 5, -1, step(0, "s", "o0", "o0"))); });
}

TEST(ExecuteXml, ACircleOfWaitsIsNamed) {
  const auto waits_first = [](int peer) {
    return tb(0, peer, peer, step(0, "r", "o0", "o0") + step(1, "s", "i0", "o0"));
  };
  const std::string text = refusal_of(xml("allgather", 2, {waits_first(1), waits_first(0)}));
  expect_in("in a circle", text);
  expect_in("gpu 0 tb 0 step 0 waits for gpu 1 to send, which stands at gpu 1 tb 0 step 0", text);
  expect_in("gpu 1 tb 0 step 0 waits for gpu 0 to send, which stands at gpu 0 tb 0 step 0", text);
}

/// "o5"; by +, GCC 12 warns of an overlap that is not there.
std::string place(const char* buffer, int offset) {
  std::string text(buffer);
  text += std::to_string(offset);
  return text;
}

TEST(ExecuteXml, ConnectionsHoldSoManyMessagesAndNoMore) {
  const auto sends_first = [](int me, int peer) {
    std::string steps;
    for (int i = 0; i < 3; ++i) steps += step(i, "s", place("i", i), "o0");
    for (int i = 0; i < 3; ++i) {
      const std::string there = place("o", 3 * peer + i);
      steps += step(3 + i, "r", there, there);
    }
    return tb(0, peer, peer, steps) + tb(1, -1, -1, step(0, "cpy", "i0", place("o", 3 * me), 3));
  };
  const Program program = xml("allgather", 6, {sends_first(0, 1), sends_first(1, 0)});
  run(program, {.slots = 3});
  expect_in("gpu 0 tb 0 step 2 waits for gpu 1 to receive what was sent before",
            refusal_of(program, {.slots = 2}));
}

TEST(ExecuteXml, AllReduceAddsAndFuses) {
  // 0 -> 1 -> 2 adds, 2 -> 1 -> 0 hands the sum back; GPU 2 adds locally, from scratch.
  const std::vector<std::string> gpus = {
      tb(0, 1, 1, step(0, "s", "i0", "o0") + step(1, "r", "o0", "o0")),
      tb(0, 2, 0, step(0, "rrs", "i0", "o0")) + tb(1, 0, 2, step(0, "rcs", "o0", "o0")),
      tb(0, 1, 1,
         step(0, "r", "s0", "s0") + step(1, "re", "i0", "s0") + step(2, "cpy", "s0", "o0") +
             step(3, "s", "o0", "o0"))};
  for (const bool in_place : {false, true}) {
    EXPECT_EQ(run(xml("allreduce", 1, gpus, in_place, 1000), {.repeat = 2}).messages, 2 * 4);
  }
}

// GPU 1 sends scratch on only after it has received into it.
TEST(ExecuteXml, DependenciesHoldSendsBack) {
  run(xml("broadcast", 1,
          {tb(0, 1, -1, step(0, "s", "i0", "o0")) + tb(1, -1, -1, step(0, "cpy", "i0", "o0")),
           tb(0, -1, 0, step(0, "r", "s0", "s0") + step(1, "cpy", "s0", "o0")) +
               tb(1, 2, -1, step(0, "s", "s0", "o0", 1, "depid=\"0\" deps=\"0\"")),
           tb(0, -1, 1, step(0, "r", "o0", "o0"))}));
}

// Without the dependency it sends what was there; GPU 0 waits until it has done so.
TEST(ExecuteXml, AMissingDependencyShowsInTheBytes) {
  expect_in("gpu 2: byte 0 of the output is 0xa5",
            refusal_of(xml("broadcast", 1,
                           {tb(0, 1, 1, step(0, "r", "s0", "s0") + step(1, "s", "i0", "o0")) +
                                tb(1, -1, -1, step(0, "cpy", "i0", "o0")),
                            tb(0, -1, 0, step(0, "r", "s0", "s0") + step(1, "cpy", "s0", "o0")) +
                                tb(1, 2, -1, step(0, "s", "s0", "o0")) +
                                tb(2, 0, -1, step(0, "s", "i0", "o0", 1, "depid=\"1\" deps=\"0\"")),
                            tb(0, -1, 1, step(0, "r", "o0", "o0"))})));
}

}  // namespace
}  // namespace rondo::execution::execution_test
