#pragma once

#include "rondo/msccl/program.hpp"

/// Small programs by hand.
namespace rondo::msccl {

inline Range at(Buffer buffer, int offset) {
  return {.buffer = buffer, .offset = offset};
}
inline Range in(int offset) {
  return at(Buffer::input, offset);
}
inline Range out(int offset) {
  return at(Buffer::output, offset);
}
inline Range scratch(int offset) {
  return at(Buffer::scratch, offset);
}
inline Step send(Range src, int count = 1) {
  return {.type = StepType::send, .src = src, .count = count};
}
inline Step receive(Range dst, int count = 1) {
  return {.type = StepType::receive, .dst = dst, .count = count};
}
inline Step pass_on(Range dst, int count = 1) {
  return {.type = StepType::receive_copy_send, .dst = dst, .count = count};
}
inline Step copy(Range src, Range dst, int count = 1) {
  return {.type = StepType::copy, .src = src, .dst = dst, .count = count};
}
inline Step nop() {
  return {.type = StepType::nop};
}
inline Step after(Step step, int tb, int awaited) {
  step.dependency = Dependency{.tb = tb, .step = awaited};
  return step;
}
inline Step awaited(Step step) {
  step.has_dependents = true;
  return step;
}

inline Program empty_program(Collective coll, int gpus, int chunks_per_loop) {
  Program program;
  program.name = "by hand";
  program.coll = coll;
  program.coll_spelling = to_string(coll);
  program.num_channels = 1;
  program.chunks_per_loop = chunks_per_loop;
  program.out_of_place = true;
  program.redop = "nop";
  program.gpus.resize(static_cast<std::size_t>(gpus));
  return program;
}

/// AllGather of one chunk on a one-way ring: every GPU sends its own and passes on what comes, all but the
/// last.
inline Program ring_allgather(int gpus) {
  Program program = empty_program(Collective::allgather, gpus, gpus);
  for (int g = 0; g < gpus; ++g) {
    Gpu& gpu = program.gpus[static_cast<std::size_t>(g)];
    gpu.input_chunks = 1;
    gpu.output_chunks = gpus;
    ThreadBlock ring = {.send_peer = (g + 1) % gpus, .recv_peer = (g + gpus - 1) % gpus};
    ring.steps.push_back(send(in(0)));
    for (int k = 1; k < gpus; ++k) {
      const Range place = out((g + gpus - k) % gpus);
      ring.steps.push_back(k + 1 < gpus ? pass_on(place) : receive(place));
    }
    gpu.tbs = {ring, {.steps = {copy(in(0), out(g))}}};
  }
  return program;
}

/// AllToAll of one chunk on a one-way ring of three: what goes two hops waits in scratch, where GPU 1 sends
/// it on from a threadblock of its own.
inline Program relayed_alltoall() {
  Program program = empty_program(Collective::alltoall, 3, 3);
  for (int g = 0; g < 3; ++g) {
    const int next = (g + 1) % 3, before = (g + 2) % 3;
    Gpu& gpu = program.gpus[static_cast<std::size_t>(g)];
    gpu = {.input_chunks = 3, .output_chunks = 3, .scratch_chunks = 1};
    const Step relay = after(send(scratch(0)), 1, 0);
    gpu.tbs = {{.send_peer = next, .steps = {send(in(before)), send(in(next)), relay}},
               {.recv_peer = before,
                .steps = {awaited(receive(scratch(0))), receive(out(before)), receive(out(next))}},
               {.steps = {copy(in(g), out(g))}}};
  }
  return program;
}

}  // namespace rondo::msccl
