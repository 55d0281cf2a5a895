#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rondo/mscclpp/plan.hpp"

/// Plans by hand, of two GPUs.
namespace rondo::test {

using mscclpp::Buffer;
using mscclpp::ChannelType;
using mscclpp::Gpu;
using mscclpp::Op;
using mscclpp::Operand;
using mscclpp::OpType;
using mscclpp::Plan;

inline Operand local(Buffer buffer, int index, int size = 1) {
  return {.buffer = buffer, .index = index, .size = size};
}
inline Operand remote(int index, int size = 1) {
  return {.where = Operand::Where::remote, .id = 0, .index = index, .size = size};
}
inline Operand at_switch(int index, int size = 1) {
  return {.where = Operand::Where::group, .id = 0, .index = index, .size = size};
}
inline Op nop() {
  return {.type = OpType::nop};
}
inline Op on_channel(OpType type, ChannelType channel = ChannelType::memory) {
  return {.type = type, .channel_type = channel, .channels = {0}};
}
inline Op with_semaphore(OpType type, int id) {
  return {.type = type, .semaphores = {id}};
}
inline Op moving(OpType type, std::vector<Operand> src, std::vector<Operand> dst) {
  return {.type = type, .channel_type = ChannelType::memory, .src = std::move(src), .dst = std::move(dst)};
}

/// A GPU with one channel of each kind to the other, which reaches its buffer `there`.
inline Gpu gpu_with(int g, int input, int output, int scratch, Buffer there) {
  Gpu gpu{.input_chunks = input, .output_chunks = output, .scratch_chunks = scratch};
  gpu.peers = {std::vector{1 - g}, std::vector{1 - g}};
  gpu.remote_buffers = {{.gpu = 1 - g, .buffer = there, .by = {true, true}}};
  gpu.tbs.push_back(
      {.channels = {std::vector{0}, std::vector{0}, {}}, .buffers = {std::vector{0}, std::vector{0}}});
  return gpu;
}

/// Each says that it has begun, and waits until the other has.
inline std::vector<Op> greeting(ChannelType channel = ChannelType::memory) {
  return {on_channel(OpType::relaxed_signal, channel), on_channel(OpType::relaxed_wait, channel), nop()};
}
inline std::vector<Op> after_greeting(std::vector<Op> ops, ChannelType channel = ChannelType::memory) {
  std::vector<Op> all = greeting(channel);
  all.insert(all.end(), ops.begin(), ops.end());
  return all;
}

/// AllGather, out of place: each puts its part into the other's output and its own.
inline Plan exchange() {
  Plan plan{.name = "exchange", .collective = "allgather"};
  for (int g = 0; g < 2; ++g) {
    Gpu gpu = gpu_with(g, 1, 2, 0, Buffer::output);
    gpu.tbs[0].ops = after_greeting(
        {moving(OpType::put, {local(Buffer::input, 0)}, {remote(g)}),
         {.type = OpType::copy, .src = {local(Buffer::input, 0)}, .dst = {local(Buffer::output, g)}},
         nop(),
         on_channel(OpType::signal),
         on_channel(OpType::wait)});
    plan.gpus.push_back(gpu);
  }
  return plan;
}

/// The same over ports: the copy is the port's.
inline Plan port_exchange() {
  Plan plan = exchange();
  for (Gpu& gpu : plan.gpus) {
    auto& ops = gpu.tbs[0].ops;
    Op put = ops[3];
    put.type = OpType::put_with_signal_flush;
    put.channel_type = ChannelType::port;
    put.channels = {0};
    ops = after_greeting({put, ops[4], on_channel(OpType::wait, ChannelType::port)}, ChannelType::port);
  }
  return plan;
}

/// AllReduce of two chunks, in place: each reads the other's half, and stores the sum at both.
inline Plan read_sum() {
  Plan plan{.name = "sum", .collective = "allreduce", .in_place = true};
  for (int g = 0; g < 2; ++g) {
    Gpu gpu = gpu_with(g, 2, 2, 0, Buffer::input);
    gpu.tbs[0].ops = after_greeting({moving(OpType::read_reduce_send, {local(Buffer::input, g), remote(g)},
                                            {local(Buffer::input, g), remote(g)}),
                                     nop(), on_channel(OpType::signal), on_channel(OpType::wait)});
    plan.gpus.push_back(gpu);
  }
  return plan;
}

/// The same by a switch.
inline Plan switched_sum() {
  Plan plan = read_sum();
  for (Gpu& gpu : plan.gpus) {
    gpu.groups = {{.buffer = Buffer::input, .size = 2, .ranks = {0, 1}}};
    gpu.tbs[0].channels[2] = {0};
    const int g = gpu.peers[0][0] == 1 ? 0 : 1;
    gpu.tbs[0].ops[3] = {.type = OpType::group_reduce_store,
                         .channel_type = ChannelType::switch_,
                         .src = {at_switch(g)},
                         .dst = {at_switch(g)}};
  }
  return plan;
}

/// The same with packets: nobody signals.
inline Plan packet_sum() {
  Plan plan{.name = "packets",
            .collective = "allreduce",
            .packets = true,
            .in_place = true,
            .double_scratch_buffer = true};
  for (int g = 0; g < 2; ++g) {
    Gpu gpu = gpu_with(g, 2, 2, 2, Buffer::scratch);
    gpu.tbs[0].ops = {
        moving(OpType::put_packets, {local(Buffer::input, 1 - g)}, {remote(0)}),
        moving(OpType::reduce_send_packets, {local(Buffer::input, g), local(Buffer::scratch, 0)},
               {local(Buffer::input, g), remote(1)})};
    gpu.tbs.push_back({.ops = {moving(OpType::unpack_packets, {local(Buffer::scratch, 1)},
                                      {local(Buffer::input, 1 - g)})}});
    gpu.tbs[1].ops[0].channel_type = std::nullopt;
    plan.gpus.push_back(gpu);
  }
  return plan;
}

/// AllReduce of one chunk, out of place, in pieces of 64 bytes: one threadblock sends them, another adds
/// those that come.
inline Plan pipelined_sum() {
  Plan plan{.name = "pieces", .collective = "allreduce"};
  for (int g = 0; g < 2; ++g) {
    Gpu gpu = gpu_with(g, 1, 1, 1, Buffer::scratch);
    gpu.semaphores = {0};
    gpu.tbs[0].ops = after_greeting(
        {{.type = OpType::pipeline,
          .unit_size = 64,
          .num_chunks = 1,
          .ops = {moving(OpType::put, {local(Buffer::input, 0)}, {remote(0)}),
                  {.type = OpType::copy, .src = {local(Buffer::input, 0)}, .dst = {local(Buffer::output, 0)}},
                  nop(),
                  on_channel(OpType::signal),
                  on_channel(OpType::wait),
                  with_semaphore(OpType::semaphore_release, 0)}}});
    gpu.tbs.push_back({.ops = {{.type = OpType::pipeline,
                                .unit_size = 64,
                                .num_chunks = 1,
                                .ops = {with_semaphore(OpType::semaphore_acquire, 0),
                                        nop(),
                                        {.type = OpType::reduce,
                                         .src = {local(Buffer::output, 0), local(Buffer::scratch, 0)},
                                         .dst = {local(Buffer::output, 0)}}}}}});
    plan.gpus.push_back(gpu);
  }
  return plan;
}

}  // namespace rondo::test
