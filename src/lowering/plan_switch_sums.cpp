#include "plan_switch_sums.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

using lowering::SwitchSum;
using mscclpp::ChannelType;
using mscclpp::Gpu;
using mscclpp::Op;
using mscclpp::Operand;
using mscclpp::OpType;
using mscclpp::ThreadBlock;

/// The sums that lie side by side as one.
std::vector<SwitchSum> joined(const std::vector<SwitchSum>& sums, int instance) {
  std::vector<SwitchSum> all;
  for (const SwitchSum& sum : sums) {
    if (sum.instance != instance) continue;
    if (!all.empty() && all.back().from.offset + all.back().count == sum.from.offset &&
        all.back().to.offset + all.back().count == sum.to.offset) {
      all.back().count += sum.count;
    } else {
      all.push_back(sum);
    }
  }
  return all;
}

/// What is from chunk `begin` to chunk `end` of all of them.
std::vector<SwitchSum> part_of(const std::vector<SwitchSum>& sums, int begin, int end) {
  std::vector<SwitchSum> part;
  int before = 0;
  for (SwitchSum sum : sums) {
    const int from = std::max(begin - before, 0), to = std::min(end - before, sum.count);
    before += sum.count;
    if (from >= to) continue;
    sum.from.offset += from;
    sum.to.offset += from;
    sum.count = to - from;
    part.push_back(sum);
  }
  return part;
}

/// Channels of a threadblock to the GPU that is `step` after its own, and from the one before it.
struct Round {
  int to = 0;
  int from = 0;
};

class SumMaker {
 public:
  explicit SumMaker(mscclpp::Plan& plan) : plan_(plan), all_(plan.gpus.size()) {
    std::iota(all_.begin(), all_.end(), 0);
  }

  void add(const std::vector<SwitchSum>& sums) {
    const int gpus = plan_.num_gpus();
    const int chunks = std::accumulate(sums.begin(), sums.end(), 0,
                                       [](int count, const SwitchSum& sum) { return count + sum.count; });
    std::vector<ThreadBlock> tbs(all_.size());
    std::vector<std::vector<Round>> rounds(all_.size());
    for (int step = 1; step < gpus; step *= 2) {
      for (const int g : all_) {
        const int to = (g + step) % gpus;
        const int here = add_channel(g, to), there = add_channel(to, g);
        rounds[index(g)].push_back({});
        rounds[index(g)].back().to = use(tbs[index(g)], here);
        // The other end belongs to the round of the same number, which may not have begun there.
        ends_.push_back({to, there});
      }
      for (const int g : all_) {
        const auto it = std::ranges::find(ends_, g, &std::pair<int, int>::first);
        rounds[index(g)].back().from = use(tbs[index(g)], it->second);
      }
      ends_.clear();
    }
    for (const int g : all_) {
      ThreadBlock& tb = tbs[index(g)];
      const auto meet = [&](OpType signal, OpType wait) {
        for (const Round& round : rounds[index(g)]) {
          tb.ops.push_back({.type = signal, .channel_type = ChannelType::memory, .channels = {round.to}});
          tb.ops.push_back({.type = wait, .channel_type = ChannelType::memory, .channels = {round.from}});
        }
      };
      meet(OpType::relaxed_signal, OpType::relaxed_wait);
      tb.ops.push_back({.type = OpType::nop});
      for (const SwitchSum& sum : part_of(sums, share(chunks, g, gpus), share(chunks, g + 1, gpus))) {
        tb.ops.push_back({.type = OpType::group_reduce_store,
                          .channel_type = ChannelType::switch_,
                          .src = {group(tb, g, sum.from, sum.count)},
                          .dst = {group(tb, g, sum.to, sum.count)}});
      }
      tb.ops.push_back({.type = OpType::nop});
      meet(OpType::signal, OpType::wait);
      plan_.gpus[index(g)].tbs.push_back(std::move(tb));
    }
  }

 private:
  static int share(int chunks, int part, int parts) {
    return static_cast<int>(static_cast<std::int64_t>(chunks) * part / parts);
  }
  int add_channel(int g, int peer) {
    auto& peers = plan_.gpus[index(g)].peers[0];
    peers.push_back(peer);
    return static_cast<int>(peers.size()) - 1;
  }
  static int use(ThreadBlock& tb, int channel) {
    auto& channels = tb.channels_of(ChannelType::memory);
    channels.push_back(channel);
    return static_cast<int>(channels.size()) - 1;
  }
  Operand group(ThreadBlock& tb, int g, const msccl::Range& range, int count) {
    const int channel = switch_channel(plan_, g, range.buffer, all_);
    auto& channels = tb.channels_of(ChannelType::switch_);
    auto it = std::ranges::find(channels, channel);
    if (it == channels.end()) it = channels.insert(it, channel);
    return {.where = Operand::Where::group,
            .id = static_cast<int>(it - channels.begin()),
            .index = range.offset,
            .size = count};
  }

  mscclpp::Plan& plan_;
  std::vector<int> all_;                   ///< GPUs
  std::vector<std::pair<int, int>> ends_;  ///< of the channels of a round: GPU and its channel
};

}  // namespace

int switch_channel(mscclpp::Plan& plan, int g, mscclpp::Buffer buffer, const std::vector<int>& ranks) {
  const mscclpp::Group group{.buffer = buffer, .size = static_cast<int>(ranks.size()), .ranks = ranks};
  const auto place = [&] {
    const auto& known = plan.gpus[index(g)].groups;
    return static_cast<int>(std::ranges::find(known, group) - known.begin());
  };
  const int before = place();
  if (before < static_cast<int>(plan.gpus[index(g)].groups.size())) return before;
  for (const int rank : ranks) plan.gpus[index(rank)].groups.push_back(group);
  return place();
}

void add_switch_sums(mscclpp::Plan& plan, const std::vector<SwitchSum>& sums) {
  int instances = 0;
  for (const SwitchSum& sum : sums) instances = std::max(instances, sum.instance + 1);
  for (int instance = 0; instance < instances; ++instance) SumMaker(plan).add(joined(sums, instance));
}

}  // namespace rondo
