#include "plan_messages.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// All steps of a program, in order.
template <class Visit>
void for_each_step(const msccl::Program& program, const Visit& visit) {
  for (int g = 0; g < program.num_gpus(); ++g) {
    const auto& tbs = program.gpus[index(g)].tbs;
    for (int t = 0; t < static_cast<int>(tbs.size()); ++t) {
      for (int s = 0; s < static_cast<int>(tbs[index(t)].steps.size()); ++s)
        visit(g, t, s, tbs[index(t)], tbs[index(t)].steps[index(s)]);
    }
  }
}

/// By GPU, how many steps write a chunk of its output or scratch, in place its input too; what it begins with
/// counts as written.
class WriteCounts {
 public:
  explicit WriteCounts(const msccl::Program& program)
      : in_place_(program.in_place), counts_(program.gpus.size()) {
    for_each_step(program, [&](int g, int, int, const msccl::ThreadBlock&, const msccl::Step& step) {
      if (!msccl::writes_destination(step.type)) return;
      for (int i = 0; i < step.count; ++i) ++counts_[index(g)][place(step.dst, i)];
    });
  }

  bool is_shared(int g, const msccl::Step& step) const {
    if (in_place_ && step.dst.buffer != msccl::Buffer::scratch) return true;
    for (int i = 0; i < step.count; ++i) {
      if (counts_[index(g)].at(place(step.dst, i)) > 1) return true;
    }
    return false;
  }

 private:
  using Place = std::pair<msccl::Buffer, int>;
  static Place place(const msccl::Range& range, int i) { return {range.buffer, range.offset + i}; }

  bool in_place_;
  std::vector<std::map<Place, int>> counts_;
};

}  // namespace

PlanMessages messages_of(const msccl::Program& program, Landing landing) {
  using msccl::Step, msccl::ThreadBlock;
  const WriteCounts writes(program);
  PlanMessages messages;
  for (const auto& gpu : program.gpus) messages.scratch.push_back(gpu.scratch_chunks);
  std::map<PlanChannels::Connection, std::vector<int>> open;
  for_each_step(program, [&](int g, int t, int s, const ThreadBlock& tb, const Step& step) {
    if (!msccl::sends(step.type)) return;
    auto& sent = open[{g, tb.send_peer, tb.channel}];
    sent.push_back(static_cast<int>(messages.all.size()));
    messages.sent_by[{g, t, s}] = sent.back();
    messages.all.push_back({.src = g, .src_tb = t, .src_step = s, .channel = tb.channel});
  });
  std::map<PlanChannels::Connection, std::size_t> taken;
  for_each_step(program, [&](int g, int t, int s, const ThreadBlock& tb, const Step& step) {
    if (!msccl::receives(step.type)) return;
    const PlanChannels::Connection connection{tb.recv_peer, g, tb.channel};
    const int m = open[connection][taken[connection]++];
    messages.received_by[{g, t, s}] = m;
    Message& message = messages.all[index(m)];
    message.dst = g;
    message.dst_tb = t;
    message.dst_step = s;
    message.landing = step.dst;
    const bool is_apart = landing == Landing::apart && writes.is_shared(g, step);
    if (!msccl::reads_source(step.type) && !is_apart) return;
    int& scratch = messages.scratch[index(g)];
    message.landing = {.buffer = msccl::Buffer::scratch, .offset = scratch};
    scratch += step.count;
  });
  return messages;
}

PlanChannels channels_of(const msccl::Program& program, const std::vector<Message>& messages,
                         const std::vector<int>& node_of) {
  using Pair = std::pair<int, int>;
  std::map<PlanChannels::Connection, int> before;  // others between the same two GPUs
  std::map<Pair, int> number;                      // the smaller GPU first
  for (const Message& message : messages) {
    const auto [it, is_new] = before.try_emplace({message.src, message.dst, message.channel}, 0);
    if (is_new) it->second = number[std::minmax(message.src, message.dst)]++;
  }
  PlanChannels channels;
  channels.peers.resize(program.gpus.size());
  std::map<Pair, int> first;
  for (const auto& [pair, count] : number) {
    for (const auto& [g, peer] : {pair, Pair(pair.second, pair.first)}) {
      auto& peers = channels.peers[index(g)][node_of[index(g)] != node_of[index(peer)] ? 1 : 0];
      first[{g, peer}] = static_cast<int>(peers.size());
      peers.insert(peers.end(), index(count), peer);
    }
  }
  for (const auto& [connection, k] : before) {
    const auto& [src, dst, channel] = connection;
    channels.send[connection] = first[{src, dst}] + k;
    channels.receive[connection] = first[{dst, src}] + k;
  }
  return channels;
}

}  // namespace rondo
