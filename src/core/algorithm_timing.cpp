#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "rondo/core/algorithm.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/retiming.hpp"

/// An algorithm's sends first stand one round after another, in each of which a link carries one message and
/// nothing that leaves rests on what arrives; then they are timed in this order.
namespace rondo {
namespace {

struct Message {
  GpuId src;
  std::vector<GpuId> dsts;  ///< several where switches copy
  SendOp op;
  std::vector<ChunkId> chunks;
};

class InRounds {
 public:
  InRounds(const Algorithm& algorithm, const Topology& topology, bool join)
      : algorithm_(algorithm),
        topology_(topology),
        join_(join && topology.has_message_costs()),
        table_(topology),
        load_us_(topology.num_links(), 0) {
    for (std::size_t h = 0; h < table_.hops().size(); ++h) {
      const Hop& hop = table_.hop(static_cast<int>(h));
      between_[{hop.src, hop.dst}].push_back(static_cast<int>(h));
    }
  }

  std::vector<Send> run() {
    const auto& sends = algorithm_.sends;
    for (std::size_t begin = 0, end = 0; begin < sends.size(); begin = end) {
      while (end < sends.size() && sends[end].step == sends[begin].step) ++end;
      add_step(messages_of(std::span(sends).subspan(begin, end - begin)));
    }
    return std::move(sends_);
  }

 private:
  std::vector<Message> messages_of(std::span<const AlgorithmSend> step) const {
    // As the file has them; of sums both halves of an exchange at the same place in the order.
    std::map<std::pair<ChunkId, std::size_t>, Message> ordered;
    std::map<std::tuple<int, GpuId, GpuId, SendOp>, Message*> joined;
    std::map<std::pair<ChunkId, GpuId>, Message*> copied;
    for (std::size_t i = 0; i < step.size(); ++i) {
      const AlgorithmSend& send = step[i];
      const SendOp op = send.op.value_or(SendOp::copy);
      Message** known = nullptr;
      if (join_ && send.message >= 0) known = &joined[{send.message, send.src, send.dst, op}];
      if (send.switches_copy) known = &copied[{send.chunk, send.src}];
      if (known != nullptr && *known != nullptr) {
        if (send.switches_copy) {
          (*known)->dsts.push_back(send.dst);
        } else {
          (*known)->chunks.push_back(send.chunk);
        }
        continue;
      }
      const bool is_sum = algorithm_.demand.contribution(send.chunk).reduce;
      Message& own = ordered[{is_sum ? send.chunk : ChunkId{0}, i}];
      own = {send.src, {send.dst}, op, {send.chunk}};
      if (known != nullptr) *known = &own;
    }
    std::vector<Message> messages;
    for (auto& [place, message] : ordered) messages.push_back(std::move(message));
    return messages;
  }

  double bytes_of(const Message& message) const {
    double bytes = 0;
    for (const ChunkId c : message.chunks) bytes += algorithm_.demand.bytes(c);
    return bytes;
  }

  /// Of the fastest hops the one whose links have least to carry so far.
  int hop_of(GpuId src, GpuId dst, double bytes) {
    const auto known = between_.find({src, dst});
    if (known == between_.end()) {
      throw Error(ExitCode::bad_data,
                  fmt::format("'{}' sends from GPU {} to GPU {}, which neither a link nor switches join on "
                              "'{}'; give the fabric that it was made for",
                              algorithm_.name, src.value, dst.value, topology_.name()));
    }
    int best = -1;
    double least_us = 0;
    const double fastest_us = table_.hop(known->second.front()).duration_us(bytes);
    for (const int h : known->second) {
      const Hop& hop = table_.hop(h);
      if (hop.duration_us(bytes) > fastest_us * (1 + 1e-9)) continue;
      double most_us = 0;
      for (const HopLink& part : hop.links)
        most_us = std::max(most_us, load_us_[part.link.index()] + part.load_us(bytes));
      if (best < 0 || most_us < least_us) {
        best = h;
        least_us = most_us;
      }
    }
    for (const HopLink& part : table_.hop(best).links) load_us_[part.link.index()] += part.load_us(bytes);
    return best;
  }

  bool may_copy(NodeId n) const { return !topology_.is_gpu(n) && topology_.node(n).multicast; }

  /// A hop to every destination, as few as the copying of switches allows.
  std::vector<Hop> hops_of(const Message& message) {
    std::vector<Hop> hops;
    std::vector<LinkId> links;  // of the tree that grows
    std::vector<int> parents;
    for (const GpuId dst : message.dsts) {
      const Hop& hop = table_.hop(hop_of(message.src, dst, bytes_of(message)));
      // As far as the tree goes the same way, to a switch that may copy.
      int at = -1;
      std::size_t shared = 0;
      for (; shared < hop.links.size(); ++shared) {
        int next = -1;
        for (std::size_t i = 0; i < links.size(); ++i) {
          if (links[i] == hop.links[shared].link && parents[i] == at) next = static_cast<int>(i);
        }
        if (next < 0) break;
        at = next;
      }
      if (shared == 0 || !may_copy(topology_.link(links[index(at)]).dst)) {
        hops.push_back(hop);
        if (!links.empty()) continue;
      }
      for (std::size_t i = shared; i < hop.links.size(); ++i) {
        links.push_back(hop.links[i].link);
        parents.push_back(at);
        at = static_cast<int>(links.size()) - 1;
      }
    }
    if (links.size() > hops.front().links.size()) hops.front() = make_hop(topology_, links, parents);
    return hops;
  }

  void add_step(const std::vector<Message>& messages) {
    std::map<int, std::vector<std::pair<const Message*, Hop>>> rounds;
    std::map<LinkId, int> next_round;
    for (const Message& message : messages) {
      for (const Hop& hop : hops_of(message)) {
        int round = 0;
        for (const HopLink& part : hop.links) round = std::max(round, next_round[part.link]);
        for (const HopLink& part : hop.links) next_round[part.link] = round + 1;
        rounds[round].emplace_back(&message, hop);
      }
    }
    for (const auto& [round, members] : rounds) {
      double end_us = now_us_;
      for (const auto& [message, hop] : members) {
        const std::size_t first = sends_.size();
        append_sends(topology_, hop, message->chunks, bytes_of(*message), now_us_, sends_);
        mark(*message, hop, first);
        for (std::size_t s = first; s < sends_.size(); ++s) end_us = std::max(end_us, sends_[s].arrival_us);
      }
      now_us_ = end_us;
    }
  }

  /// What sends of sums have besides their times: op where they enter a GPU, and numbers through switches.
  void mark(const Message& message, const Hop& hop, std::size_t first) {
    std::map<LinkId, std::int32_t> number;
    auto current = static_cast<std::int32_t>(first);
    for (std::size_t i = 0; i < hop.links.size(); ++i) {
      if (topology_.node(topology_.link(hop.links[i].link).src).stores())
        current = static_cast<std::int32_t>(first + i);
      number[hop.links[i].link] = current;
    }
    for (std::size_t s = first; s < sends_.size(); ++s) {
      Send& send = sends_[s];
      if (!algorithm_.demand.contribution(send.chunk).reduce) continue;
      if (topology_.is_gpu(topology_.link(send.link).dst)) send.op = message.op;
      if (hop.links.size() > 1) send.transfer = number.at(send.link);
    }
  }

  const Algorithm& algorithm_;
  const Topology& topology_;
  bool join_;
  HopTable table_;
  std::map<std::pair<GpuId, GpuId>, std::vector<int>> between_;  ///< fastest first
  std::vector<double> load_us_;                                  ///< per link
  std::vector<Send> sends_;
  double now_us_ = 0;
};

}  // namespace

Schedule timed(const Algorithm& algorithm, const Topology& topology, bool join) {
  if (algorithm.demand.num_gpus() != topology.num_gpus()) {
    throw Error(ExitCode::bad_data,
                fmt::format("'{}' is for {} GPUs, but '{}' has {}; give a fabric of as many", algorithm.name,
                            algorithm.demand.num_gpus(), topology.name(), topology.num_gpus()));
  }
  std::vector<Send> sends = InRounds(algorithm, topology, join).run();
  return retimed({topology, sends}, topology, algorithm.demand);
}

}  // namespace rondo
