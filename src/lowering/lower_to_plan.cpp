#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "op_emitter.hpp"
#include "plan_messages.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/lowering/lowering.hpp"
#include "rondo/mscclpp/check.hpp"

namespace rondo {
namespace {

using msccl::Range;
using msccl::Step;
using msccl::StepType;
using mscclpp::ChannelType;
using mscclpp::Op;
using mscclpp::Operand;
using mscclpp::OpType;

constexpr int kMostAttempts = 16;
/// Threadblocks that run at the same time: one a streaming multiprocessor, of which A100 has 108, the fewest
/// of the GPUs that MSCCL++ runs on.
constexpr int kMostTbs = 108;

/// Caps that lower() has to keep so that a plan fits. Steps: what most of a threadblock's can become.
msccl::Executor plan_executor(int steps) {
  return {.name = "MSCCL++",
          .description = "",
          .steps = steps,
          .tbs = kMostTbs,
          .dependency_tb = kMostTbs,
          .channels = 1 << 20,
          .connections = 1 << 20,
          .count = 1 << 20,
          .offset = 1 << 30,
          .xml_nodes = 1 << 30,
          .gpus = 1 << 20,
          .name_length = 255,
          .colls = {"allgather", "alltoall", "allreduce", "reducescatter", "broadcast", "reduce", "gather",
                    "scatter", "custom"}};
}

Operand local(const Range& range, int count) {
  return {.buffer = range.buffer, .index = range.offset, .size = count};
}

class PlanMaker {
 public:
  PlanMaker(const msccl::Program& program, const std::vector<int>& node_of)
      : program_(program),
        node_of_(node_of),
        messages_(messages_of(program)),
        channels_(channels_of(program, messages_.all, node_of)) {}

  mscclpp::Plan run(const PlanOptions& options) {
    plan_.name = program_.name;
    plan_.collective = program_.coll_spelling;
    plan_.in_place = options.in_place;
    plan_.gpus.resize(program_.gpus.size());
    for (int g = 0; g < program_.num_gpus(); ++g) {
      for (std::size_t type = 0; type < 2; ++type)
        plan_.gpus[index(g)].peers[type] = channels_.peers[index(g)][type];
      plan_.gpus[index(g)].tbs.resize(tbs(g).size());
      make_semaphores(g);
    }
    for (int g = 0; g < program_.num_gpus(); ++g) {
      for (int t = 0; t < static_cast<int>(tbs(g).size()); ++t) add_tb(g, t);
    }
    for (int g = 0; g < program_.num_gpus(); ++g) {
      const auto [input, output] = msccl::buffer_chunks(program_, g);
      mscclpp::Gpu& gpu = plan_.gpus[index(g)];
      gpu.input_chunks = input;
      gpu.output_chunks = output;
      gpu.scratch_chunks = messages_.scratch[index(g)];
    }
    limit_messages(options);
    return std::move(plan_);
  }

 private:
  using Key = std::tuple<int, int, int>;

  const std::vector<msccl::ThreadBlock>& tbs(int g) const { return program_.gpus[index(g)].tbs; }
  const Step& step(int g, int t, int s) const { return tbs(g)[index(t)].steps[index(s)]; }
  bool is_port(int g, int peer) const { return node_of_[index(g)] != node_of_[index(peer)]; }

  /// What each threadblock releases after a step, and acquires before one.
  void make_semaphores(int g) {
    std::map<std::pair<int, int>, int> ids, last;
    for (int t = 0; t < static_cast<int>(tbs(g).size()); ++t) {
      for (int s = 0; s < static_cast<int>(tbs(g)[index(t)].steps.size()); ++s) {
        const auto& dependency = step(g, t, s).dependency;
        if (!dependency || dependency->tb == t) continue;
        const std::pair pair(dependency->tb, t);
        const auto [seen, is_first] = last.try_emplace(pair, -1);
        if (dependency->step <= seen->second) continue;  // an earlier wait has seen to it
        seen->second = dependency->step;
        const auto [id, is_new] = ids.try_emplace(pair, static_cast<int>(ids.size()));
        if (is_new) plan_.gpus[index(g)].semaphores.push_back(0);
        acquires_[{g, t, s}].push_back(id->second);
        releases_[{g, dependency->tb, dependency->step}].push_back(id->second);
      }
    }
  }

  static int place_in(std::vector<int>& known, int id) {
    const auto it = std::ranges::find(known, id);
    if (it != known.end()) return static_cast<int>(it - known.begin());
    known.push_back(id);
    return static_cast<int>(known.size()) - 1;
  }

  int channel_in(int g, int t, ChannelType type, int id) {
    return place_in(plan_.gpus[index(g)].tbs[index(t)].channels_of(type), id);
  }

  Operand remote(const Message& message, int count) {
    const std::size_t type = is_port(message.src, message.dst) ? 1 : 0;
    mscclpp::Gpu& gpu = plan_.gpus[index(message.src)];
    mscclpp::RemoteBuffer buffer{.gpu = message.dst, .buffer = message.landing.buffer};
    buffer.by[type] = true;
    auto it = std::ranges::find(gpu.remote_buffers, buffer);
    if (it == gpu.remote_buffers.end()) it = gpu.remote_buffers.insert(it, buffer);
    const int id = static_cast<int>(it - gpu.remote_buffers.begin());
    return {.where = Operand::Where::remote,
            .id = place_in(gpu.tbs[index(message.src_tb)].buffers[type], id),
            .index = message.landing.offset,
            .size = count};
  }

  /// Semaphores, as many as an operation takes at a time.
  template <class Emit>
  static void for_each_lot(const std::vector<int>& ids, const Emit& emit) {
    const auto most = static_cast<std::size_t>(mscclpp::kCaps.op_semaphores);
    for (std::size_t begin = 0; begin < ids.size(); begin += most) {
      emit(std::vector<int>(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                            ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), begin + most))));
    }
  }

  /// On one of the GPU's channels to `peer`.
  Op on_channel(OpType op, int g, int t, int peer, int id) {
    const ChannelType type = is_port(g, peer) ? ChannelType::port : ChannelType::memory;
    return {.type = op, .channel_type = type, .channels = {channel_in(g, t, type, id)}};
  }

  void add_tb(int g, int t) {
    OpEmitter emit(plan_.gpus[index(g)].tbs[index(t)].ops);
    std::vector<int> waits;
    bool may_send = false;
    const msccl::ThreadBlock& tb = tbs(g)[index(t)];
    if (std::ranges::any_of(tb.steps, [](const Step& step) { return msccl::receives(step.type); }))
      emit.publish(on_channel(OpType::relaxed_signal, g, t, tb.recv_peer,
                              channels_.receive.at({tb.recv_peer, g, tb.channel})),
                   1);
    for (int s = 0; s < static_cast<int>(tbs(g)[index(t)].steps.size()); ++s) {
      const Key key{g, t, s};
      if (const auto it = acquires_.find(key); it != acquires_.end())
        waits.insert(waits.end(), it->second.begin(), it->second.end());
      const Step& now = step(g, t, s);
      if (now.type == StepType::nop) continue;
      for_each_lot(waits, [&](std::vector<int> ids) {
        const std::size_t count = ids.size();
        emit.wait({.type = OpType::semaphore_acquire, .semaphores = std::move(ids)}, count);
      });
      waits.clear();
      if (msccl::sends(now.type) && !may_send) {
        emit.wait(on_channel(OpType::relaxed_wait, g, t, tb.send_peer,
                             channels_.send.at({g, tb.send_peer, tb.channel})),
                  1);
        may_send = true;
      }
      add_step(emit, g, t, s, now);
      if (const auto it = releases_.find(key); it != releases_.end()) {
        for_each_lot(it->second, [&](std::vector<int> ids) {
          const std::size_t count = ids.size();
          emit.publish({.type = OpType::semaphore_release, .semaphores = std::move(ids)}, count);
        });
      }
    }
  }

  void add_step(OpEmitter& emit, int g, int t, int s, const Step& now) {
    Range source = now.src;
    const bool adds = msccl::receives(now.type) && msccl::reads_source(now.type);
    Op add{.type = OpType::reduce};
    if (msccl::receives(now.type)) {
      const Message& message = messages_.all[index(messages_.received_by.at({g, t, s}))];
      const int id = channels_.receive.at({message.src, g, tbs(g)[index(t)].channel});
      emit.wait(on_channel(OpType::wait, g, t, message.src, id), 1);
      source = now.type == StepType::receive_reduce_send ? message.landing : now.dst;
      if (adds) {
        add.src = {local(now.src, now.count), local(message.landing, now.count)};
        add.dst = {local(source, now.count)};
      }
    }
    if (now.type == StepType::copy)
      emit.move(
          {.type = OpType::copy, .src = {local(now.src, now.count)}, .dst = {local(now.dst, now.count)}},
          false);
    if (now.type == StepType::reduce) {
      emit.move({.type = OpType::reduce,
                 .src = {local(now.dst, now.count), local(now.src, now.count)},
                 .dst = {local(now.dst, now.count)}},
                false);
    }
    if (!msccl::sends(now.type)) {
      if (adds) emit.move(std::move(add), false);
      return;
    }
    const Message& message = messages_.all[index(messages_.sent_by.at({g, t, s}))];
    const Operand there = remote(message, now.count);
    const int id = channels_.send.at({g, message.dst, tbs(g)[index(t)].channel});
    if (is_port(g, message.dst)) {
      if (adds) emit.move(std::move(add), false);
      emit.move({.type = flushes(message, source) ? OpType::put_with_signal_flush : OpType::put_with_signal,
                 .channel_type = ChannelType::port,
                 .channels = {channel_in(g, t, ChannelType::port, id)},
                 .src = {local(source, now.count)},
                 .dst = {there}},
                true);
      return;
    }
    if (adds) {
      add.type = OpType::reduce_send;
      add.channel_type = ChannelType::memory;
      add.dst.push_back(there);
      emit.move(std::move(add), false);
    } else {
      emit.move({.type = OpType::put,
                 .channel_type = ChannelType::memory,
                 .src = {local(source, now.count)},
                 .dst = {there}},
                false);
    }
    emit.publish(on_channel(OpType::signal, g, t, message.dst, id), 1);
  }

  /// The last of its connection, and what is written again: sums, but for those in landings.
  bool flushes(const Message& message, const Range& source) const {
    const auto& steps = tbs(message.src)[index(message.src_tb)].steps;
    const bool is_last = std::none_of(steps.begin() + message.src_step + 1, steps.end(),
                                      [](const Step& later) { return msccl::sends(later.type); });
    return is_last || (program_.coll->reduces && source.buffer != msccl::Buffer::input) ||
           (program_.coll->reduces && plan_.in_place);
  }

  /// Offsets have 32 bits, and chunks whole units of the executor's alignment.
  void limit_messages(const PlanOptions& options) {
    std::uint64_t most_chunks = 1;
    for (const mscclpp::Gpu& gpu : plan_.gpus) {
      for (const int chunks : {gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks})
        most_chunks = std::max(most_chunks, static_cast<std::uint64_t>(chunks));
    }
    const mscclpp::Gpu& first = plan_.gpus.front();
    const auto message_chunks = static_cast<std::uint64_t>(
        mscclpp::collective_of(plan_) == Collective::allgather ? first.output_chunks : first.input_chunks);
    const auto alignment = static_cast<std::uint64_t>(plan_.alignment);
    const std::uint64_t chunk = ((std::uint64_t{1} << 32) - 1) / most_chunks / alignment * alignment;
    const std::uint64_t least = message_chunks * alignment, most = message_chunks * chunk;
    if (options.min_bytes > most || options.max_bytes < least) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("the plan takes messages of {} to {} bytes ({} chunks of 16 bytes and more, buffers "
                      "below 4 GiB), but --min-bytes is {} and --max-bytes {}",
                      least, most, message_chunks, options.min_bytes, options.max_bytes));
    }
    plan_.min_bytes = std::max(options.min_bytes, least);
    plan_.max_bytes = std::min(options.max_bytes, most);
  }

  const msccl::Program& program_;
  const std::vector<int>& node_of_;
  mscclpp::Plan plan_;
  const PlanMessages messages_;
  const PlanChannels channels_;
  std::map<Key, std::vector<int>> acquires_, releases_;  ///< by GPU, threadblock and step
};

std::vector<int> nodes_of(const Topology& topology, int gpus_per_node) {
  std::vector<int> nodes;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const std::optional<int> chassis = topology.node(topology.node_of(GpuId{g})).chassis;
    nodes.push_back(gpus_per_node > 0 ? static_cast<int>(g) / gpus_per_node : chassis.value_or(-1));
  }
  return nodes;
}

int most_ops(const mscclpp::Plan& plan) {
  std::size_t most = 0;
  for (const mscclpp::Gpu& gpu : plan.gpus) {
    for (const mscclpp::ThreadBlock& tb : gpu.tbs) most = std::max(most, tb.ops.size());
  }
  return static_cast<int>(most);
}

}  // namespace

mscclpp::Plan lower_to_plan(const ProvenSchedule& proven, const PlanOptions& options) {
  const std::vector<int> nodes = nodes_of(proven.topology, options.gpus_per_node);
  // A threadblock may have more steps than the least that 64 operations are enough for.
  int steps = mscclpp::kCaps.ops;
  for (int attempt = 1;; ++attempt) {
    const msccl::Executor executor = plan_executor(steps);
    const msccl::Program program = lower(proven, {.executor = &executor,
                                                  .in_place = options.in_place,
                                                  .instances = options.instances,
                                                  .max_peers = options.max_peers,
                                                  .name = options.name,
                                                  .reuse_scratch = false});
    mscclpp::Plan plan = PlanMaker(program, nodes).run(options);
    const int ops = most_ops(plan);
    if (ops > mscclpp::kCaps.ops && attempt < kMostAttempts && steps > 1) {
      // Fewer steps have more waits among them.
      steps = std::max(1, std::min(steps - 1, steps * (mscclpp::kCaps.ops - 8) / ops));
      continue;
    }
    if (const auto excess = mscclpp::beyond_caps(plan)) {
      throw Error(
          ExitCode::unavailable,
          *excess + "; use fewer chunks (--chunks of rondo solve), fewer --instances or another engine");
    }
    const mscclpp::CheckResult result = mscclpp::check(plan);
    if (!result.valid()) {
      throw Error(ExitCode::internal,
                  "the plan made from the schedule is wrong: " + result.findings.front().where + ": " +
                      result.findings.front().what);
    }
    return plan;
  }
}

}  // namespace rondo
