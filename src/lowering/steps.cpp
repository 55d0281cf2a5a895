#include "steps.hpp"

#include <algorithm>
#include <map>

namespace rondo::lowering {
namespace {

using msccl::Buffer;
using msccl::Range;
using msccl::StepType;

/// Who has written and read what on one GPU.
class AccessLog {
 public:
  /// Steps that a reader, or a writer, of the range has to follow.
  void read(int step, Range range, int count, std::vector<int>& follows) {
    if (range.buffer == Buffer::input) return;  // nothing writes it
    for (int i = 0; i < count; ++i) {
      Cell& cell = at(range, i);
      if (cell.writer >= 0) follows.push_back(cell.writer);
      cell.readers.push_back(step);
    }
  }
  void write(int step, Range range, int count, std::vector<int>& follows) {
    for (int i = 0; i < count; ++i) {
      Cell& cell = at(range, i);
      if (cell.readers.empty() && cell.writer >= 0) follows.push_back(cell.writer);
      follows.insert(follows.end(), cell.readers.begin(), cell.readers.end());
      cell.readers.clear();
      cell.writer = step;
    }
  }

 private:
  struct Cell {
    int writer = -1;
    std::vector<int> readers{};
  };
  Cell& at(Range range, int i) {
    auto& cells = range.buffer == Buffer::scratch ? scratch_ : output_;
    const auto place = static_cast<std::size_t>(range.offset + i);
    if (place >= cells.size()) cells.resize(place + 1);
    return cells[place];
  }
  std::vector<Cell> output_, scratch_;
};

/// Scratch of one GPU. Blocks that have been free for longest are taken first: waiting for them costs least.
class Scratch {
 public:
  int take(int count) {
    const auto length = static_cast<std::size_t>(count);
    std::size_t best = free_since_.size();
    long best_time = kTaken;
    for (std::size_t begin = 0; begin + length <= free_since_.size(); ++begin) {
      const auto first = free_since_.begin() + static_cast<std::ptrdiff_t>(begin);
      const long time = *std::max_element(first, first + count);
      if (time < best_time) {
        best = begin;
        best_time = time;
      }
    }
    if (best_time == kTaken) {
      while (best > 0 && free_since_[best - 1] != kTaken) --best;
      free_since_.resize(best + length);
    }
    std::fill_n(free_since_.begin() + static_cast<std::ptrdiff_t>(best), count, kTaken);
    return static_cast<int>(best);
  }
  void free(int offset, int count, int time) {
    std::fill_n(free_since_.begin() + offset, count, static_cast<long>(time));
  }
  int size() const { return static_cast<int>(free_since_.size()); }

 private:
  static constexpr long kTaken = 1L << 40;
  std::vector<long> free_since_;
};

class StepMaker {
 public:
  StepMaker(const std::vector<Batch>& batches, const Plan& plan, const Layout& layout)
      : batches_(batches),
        plan_(plan),
        logs_(static_cast<std::size_t>(layout.num_gpus())),
        scratch_(logs_.size()),
        last_of_tb_(plan.tbs.size(), -1),
        to_(batches.size()),
        sender_(batches.size(), -1),
        receiver_(batches.size(), -1),
        reads_left_(batches.size(), 0) {
    for (std::size_t b = 0; b < batches.size(); ++b) {
      if (reads_scratch(static_cast<int>(b))) {
        for (const int parent : distinct_parents(batches[b])) ++reads_left_[static_cast<std::size_t>(parent)];
      }
    }
  }

  StepGraph run() {
    for (const Event& event : plan_.events) {
      if (event.is_arrival) {
        receive(event.batch);
      } else {
        send(event.batch);
      }
    }
    for (const Scratch& scratch : scratch_) graph_.scratch_chunks.push_back(scratch.size());
    return std::move(graph_);
  }

 private:
  static std::vector<int> distinct_parents(const Batch& batch) {
    std::vector<int> parents = batch.parents;
    std::sort(parents.begin(), parents.end());
    parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
    return parents;
  }
  bool is_fused(int b) const { return plan_.fused[static_cast<std::size_t>(b)] != 0; }
  bool reads_scratch(int b) const {
    return batches_[static_cast<std::size_t>(b)].from.buffer == Buffer::scratch && !is_fused(b);
  }

  void send(int b) {
    const Batch& batch = batches_[static_cast<std::size_t>(b)];
    const int step = append({.type = StepType::send,
                             .gpu = batch.src,
                             .tb = plan_.sender[static_cast<std::size_t>(b)],
                             .batch = b,
                             .src = batch.from,
                             .src_gpu = batch.src,
                             .dst_gpu = batch.dst});
    Range& from = graph_.nodes[static_cast<std::size_t>(step)].src;
    if (from.buffer == Buffer::scratch) {
      from.offset += to_[static_cast<std::size_t>(batch.parents.front())].offset;
    }
    std::vector<int> follows;
    logs_[static_cast<std::size_t>(batch.src)].read(step, from, batch.count, follows);
    wait(step, std::move(follows));
    if (reads_scratch(b)) {
      for (const int parent : distinct_parents(batch)) {
        if (--reads_left_[static_cast<std::size_t>(parent)] == 0) release(parent, step);
      }
    }
    sender_[static_cast<std::size_t>(b)] = step;
  }

  /// The step that sends `b`, which has been made.
  int sender_of(int b) {
    if (!is_fused(b)) return sender_[static_cast<std::size_t>(b)];
    const int parent = batches_[static_cast<std::size_t>(b)].parents.front();
    const int step = receiver_[static_cast<std::size_t>(parent)];
    graph_.nodes[static_cast<std::size_t>(step)].type = StepType::receive_copy_send;
    return step;
  }

  void receive(int b) {
    const Batch& batch = batches_[static_cast<std::size_t>(b)];
    const int sender = sender_of(b);
    Range to = batch.to;
    if (to.buffer == Buffer::scratch)
      to.offset = scratch_[static_cast<std::size_t>(batch.dst)].take(batch.count);
    to_[static_cast<std::size_t>(b)] = to;
    StepNode& sending = graph_.nodes[static_cast<std::size_t>(sender)];
    if (sending.type == StepType::send) sending.dst = to;
    const Range from = sending.type == StepType::send ? sending.src : sending.dst;
    const int step = append({.type = StepType::receive,
                             .gpu = batch.dst,
                             .tb = plan_.receiver[static_cast<std::size_t>(b)],
                             .batch = b,
                             .src = from,
                             .dst = to,
                             .src_gpu = batch.src,
                             .dst_gpu = batch.dst,
                             .sender = sender});
    receiver_[static_cast<std::size_t>(b)] = step;
    std::vector<int> follows;
    logs_[static_cast<std::size_t>(batch.dst)].write(step, to, batch.count, follows);
    wait(step, std::move(follows));
    if (to.buffer == Buffer::scratch && reads_left_[static_cast<std::size_t>(b)] == 0) release(b, step);
  }

  void release(int b, int time) {
    const Batch& batch = batches_[static_cast<std::size_t>(b)];
    scratch_[static_cast<std::size_t>(batch.dst)].free(to_[static_cast<std::size_t>(b)].offset, batch.count,
                                                       time);
  }

  int append(StepNode node) {
    const int step = static_cast<int>(graph_.nodes.size());
    int& last = last_of_tb_[static_cast<std::size_t>(node.tb)];
    node.previous = last;
    node.index = last < 0 ? 0 : graph_.nodes[static_cast<std::size_t>(last)].index + 1;
    last = step;
    graph_.nodes.push_back(std::move(node));
    return step;
  }

  /// Keeps the latest of each other threadblock.
  void wait(int step, std::vector<int> follows) {
    StepNode& node = graph_.nodes[static_cast<std::size_t>(step)];
    std::map<int, int> latest;
    for (const int other : follows) {
      const int tb = graph_.nodes[static_cast<std::size_t>(other)].tb;
      if (tb == node.tb) continue;
      int& known = latest.try_emplace(tb, other).first->second;
      known = std::max(known, other);
    }
    for (const auto& [tb, other] : latest) node.waits_for.push_back(other);
  }

  const std::vector<Batch>& batches_;
  const Plan& plan_;
  StepGraph graph_;
  std::vector<AccessLog> logs_;   ///< per GPU
  std::vector<Scratch> scratch_;  ///< per GPU
  std::vector<int> last_of_tb_;
  std::vector<Range> to_;        ///< per batch: its place at the destination
  std::vector<int> sender_;      ///< per batch: the step that sends it, where it is not fused
  std::vector<int> receiver_;    ///< per batch: the step that receives it
  std::vector<int> reads_left_;  ///< per batch in scratch: batches that are still to be sent from it
};

}  // namespace

StepGraph make_steps(const std::vector<Batch>& batches, const Plan& plan, const Layout& layout) {
  return StepMaker(batches, plan, layout).run();
}

}  // namespace rondo::lowering
