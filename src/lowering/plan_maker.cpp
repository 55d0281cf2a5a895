#include "plan_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "op_emitter.hpp"
#include "plan_messages.hpp"
#include "plan_multicasts.hpp"
#include "plan_switch_sums.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"

namespace rondo {
namespace {

using msccl::Range;
using msccl::Step;
using msccl::StepType;
using mscclpp::ChannelType;
using mscclpp::Op;
using mscclpp::Operand;
using mscclpp::OpType;

Operand local(const Range& range, int count) {
  return {.buffer = range.buffer, .index = range.offset, .size = count};
}

Op copying(const Range& from, const Range& to, int count) {
  return {.type = OpType::copy, .src = {local(from, count)}, .dst = {local(to, count)}};
}

class PlanMaker {
 public:
  /// `multicasts`: sends that switches may make of one.
  PlanMaker(const lowering::Lowered& lowered, const std::vector<int>& node_of,
            const lowering::MulticastSteps& multicasts, Landing landing)
      : program_(lowered.program),
        sums_(lowered.sums),
        node_of_(node_of),
        messages_(messages_of(program_, landing)),
        multicasts_(multicasts_of(program_, multicasts, node_of, messages_)),
        channels_(channels_of(program_, messages_.all, node_of)) {}

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
    for (mscclpp::Gpu& gpu : plan_.gpus)
      std::erase_if(gpu.tbs, [](const mscclpp::ThreadBlock& tb) { return tb.ops.empty(); });
    add_switch_sums(plan_, sums_);
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
      for (int s = 0; s <= last_done(g, t); ++s) {
        auto dependency = step(g, t, s).dependency;
        if (!dependency) continue;
        if (const auto it = multicasts_.instead.find({g, dependency->tb, dependency->step});
            it != multicasts_.instead.end())
          dependency = {.tb = std::get<1>(it->second), .step = std::get<2>(it->second)};
        if (dependency->tb == t) continue;
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

  /// The last step of a threadblock that does more than wait, now that switches copy; -1: none.
  int last_done(int g, int t) const {
    int s = static_cast<int>(tbs(g)[index(t)].steps.size()) - 1;
    while (s >= 0 && (step(g, t, s).type == StepType::nop || multicasts_.instead.contains({g, t, s}))) --s;
    return s;
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
    std::set<int> ready;  // Message::channel
    std::set<PlanChannels::Connection> may_send;
    const msccl::ThreadBlock& tb = tbs(g)[index(t)];
    for (int s = 0; s < static_cast<int>(tb.steps.size()); ++s) {
      if (!msccl::receives(tb.steps[index(s)].type)) continue;
      const int channel = messages_.all[index(messages_.received_by.at({g, t, s}))].channel;
      if (!ready.insert(channel).second) continue;
      emit.publish(on_channel(OpType::relaxed_signal, g, t, tb.recv_peer,
                              channels_.receive.at({tb.recv_peer, g, channel})),
                   1);
    }
    for (int s = 0; s < static_cast<int>(tb.steps.size()); ++s) {
      const Key key{g, t, s};
      if (const auto it = acquires_.find(key); it != acquires_.end())
        waits.insert(waits.end(), it->second.begin(), it->second.end());
      const Step& now = step(g, t, s);
      if (now.type == StepType::nop || multicasts_.instead.contains(key)) continue;
      for_each_lot(waits, [&](std::vector<int> ids) {
        const std::size_t count = ids.size();
        emit.wait({.type = OpType::semaphore_acquire, .semaphores = std::move(ids)}, count);
      });
      waits.clear();
      for (const int m : sent_by(key)) {
        const Message& message = messages_.all[index(m)];
        if (!may_send.insert(message.connection()).second) continue;
        emit.wait(
            on_channel(OpType::relaxed_wait, g, t, message.dst, channels_.send.at(message.connection())), 1);
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

  /// Messages, several where a switch copies.
  std::vector<int> sent_by(const Key& key) const {
    if (const auto it = multicasts_.by_step.find(key); it != multicasts_.by_step.end())
      return it->second.messages;
    const auto it = messages_.sent_by.find(key);
    return it == messages_.sent_by.end() ? std::vector<int>{} : std::vector{it->second};
  }

  void add_step(OpEmitter& emit, int g, int t, int s, const Step& now) {
    Range source = now.src;
    const bool adds = msccl::receives(now.type) && msccl::reads_source(now.type);
    Op add{.type = OpType::reduce};
    if (msccl::receives(now.type)) {
      const Message& message = messages_.all[index(messages_.received_by.at({g, t, s}))];
      const int id = channels_.receive.at(message.connection());
      emit.wait(on_channel(OpType::wait, g, t, message.src, id), 1);
      source = now.type == StepType::receive_reduce_send ? message.landing : now.dst;
      if (adds) {
        add.src = {local(now.src, now.count), local(message.landing, now.count)};
        add.dst = {local(source, now.count)};
      } else if (message.landing != now.dst) {
        emit.move(copying(message.landing, now.dst, now.count), false);
      }
    }
    if (now.type == StepType::copy) copy_rest(emit, g, now);
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
    if (const auto it = multicasts_.by_step.find({g, t, s}); it != multicasts_.by_step.end())
      return store_at_all(emit, g, t, it->second, local(source, now.count));
    const Message& message = messages_.all[index(messages_.sent_by.at({g, t, s}))];
    const Operand there = remote(message, now.count);
    const int id = channels_.send.at(message.connection());
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

  void store_at_all(OpEmitter& emit, int g, int t, const PlanMulticast& multicast, const Operand& source) {
    const int channel = switch_channel(plan_, g, multicast.to.buffer, multicast.ranks);
    emit.move({.type = OpType::group_store,
               .channel_type = ChannelType::switch_,
               .src = {source},
               .dst = {{.where = Operand::Where::group,
                        .id = channel_in(g, t, ChannelType::switch_, channel),
                        .index = multicast.to.offset,
                        .size = source.size}}},
              false);
    Op signal{.type = OpType::signal, .channel_type = ChannelType::memory};
    const auto flush = [&] {
      const std::size_t count = signal.channels.size();
      if (count > 0) emit.publish(signal, count);
      signal.channels.clear();
    };
    for (const int m : multicast.messages) {
      signal.channels.push_back(
          channel_in(g, t, ChannelType::memory, channels_.send.at(messages_.all[index(m)].connection())));
      if (static_cast<int>(signal.channels.size()) == mscclpp::kCaps.op_channels) flush();
    }
    flush();
  }

  /// What the GPU's own stores over a switch have not written already.
  void copy_rest(OpEmitter& emit, int g, const Step& now) {
    const auto copy = [&](int begin, int end) {
      if (begin >= end) return;
      Range from = now.src, to = now.dst;
      from.offset += begin;
      to.offset += begin;
      emit.move(copying(from, to, end - begin), false);
    };
    int begin = 0;
    for (const auto& [offset, count] : multicasts_.stored_here[index(g)]) {
      const int first = offset - now.dst.offset;
      if (now.dst.buffer != msccl::Buffer::output || first + count <= 0 || first >= now.count) continue;
      copy(begin, first);
      begin = std::max(begin, first + count);
    }
    copy(begin, now.count);
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
  const std::vector<lowering::SwitchSum>& sums_;
  const std::vector<int>& node_of_;
  mscclpp::Plan plan_;
  PlanMessages messages_;
  const PlanMulticasts multicasts_;
  const PlanChannels channels_;
  std::map<Key, std::vector<int>> acquires_, releases_;  ///< by GPU, threadblock and step
};

}  // namespace

mscclpp::Plan make_plan(const lowering::Lowered& lowered, const std::vector<int>& node_of,
                        const lowering::MulticastSteps& multicasts, const PlanOptions& options,
                        Landing landing) {
  return PlanMaker(lowered, node_of, multicasts, landing).run(options);
}

}  // namespace rondo
