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
  StepMaker(const Traffic& traffic, const Plan& plan, const Layout& layout, bool reuse_scratch)
      : reuse_scratch_(reuse_scratch),
        batches_(traffic.batches),
        areas_(traffic.areas),
        plan_(plan),
        logs_(static_cast<std::size_t>(layout.num_gpus())),
        scratch_(logs_.size()),
        last_of_tb_(plan.tbs.size(), -1),
        sender_(batches_.size(), -1),
        passed_on_(batches_.size(), -1),
        area_at_(areas_.size(), -1),
        uses_left_(areas_.size(), 0) {
    for (std::size_t b = 0; b < batches_.size(); ++b) {
      if (plan.fused[b] >= 0) passed_on_[static_cast<std::size_t>(plan.fused[b])] = static_cast<int>(b);
    }
    for (const Event& event : plan.events) {
      for (const int area : areas_of(event)) ++uses_left_[static_cast<std::size_t>(area)];
    }
  }

  StepGraph run() {
    for (const Event& event : plan_.events) {
      const std::vector<int> areas = areas_of(event);
      for (const int area : areas) take(area, gpu_of(event));
      const int step = event.is_arrival ? receive(event.batch) : send(event.batch);
      for (const int area : areas) {
        if (--uses_left_[static_cast<std::size_t>(area)] == 0 && reuse_scratch_)
          release(area, gpu_of(event), step);
      }
    }
    for (const Scratch& scratch : scratch_) graph_.scratch_chunks.push_back(scratch.size());
    return std::move(graph_);
  }

 private:
  const Batch& batch_of(int b) const { return batches_[static_cast<std::size_t>(b)]; }
  /// The batch that the step which receives `b` sends on; -1: none.
  int passed_on(int b) const { return passed_on_[static_cast<std::size_t>(b)]; }
  int gpu_of(const Event& event) const {
    return event.is_arrival ? batch_of(event.batch).dst : batch_of(event.batch).src;
  }

  /// What the step that receives `b` does.
  StepType type_of(int b) const {
    const int next = passed_on(b);
    if (!batch_of(b).adds) return next < 0 ? StepType::receive : StepType::receive_copy_send;
    if (next < 0) return StepType::receive_reduce_copy;
    return batch_of(next).clears ? StepType::receive_reduce_send : StepType::receive_reduce_copy_send;
  }

  /// The areas of scratch that the steps of an event read or write, each once.
  std::vector<int> areas_of(const Event& event) const {
    const Batch& batch = batch_of(event.batch);
    std::vector<int> areas;
    const auto add = [&](const Spot& spot) {
      if (spot.area >= 0 && std::ranges::count(areas, spot.area) == 0) areas.push_back(spot.area);
    };
    if (!event.is_arrival) {
      add(batch.from);
      return areas;
    }
    const StepType type = type_of(event.batch);
    if (msccl::writes_destination(type)) add(batch.to);
    if (msccl::reads_source(type)) add(batch.summand);
    return areas;
  }

  Range place_of(const Spot& spot) const {
    Range range = spot.range;
    if (spot.area >= 0) range.offset += area_at_[static_cast<std::size_t>(spot.area)];
    return range;
  }

  void take(int area, int gpu) {
    int& at = area_at_[static_cast<std::size_t>(area)];
    if (at < 0) at = scratch_[static_cast<std::size_t>(gpu)].take(areas_[static_cast<std::size_t>(area)]);
  }
  void release(int area, int gpu, int time) {
    const auto a = static_cast<std::size_t>(area);
    scratch_[static_cast<std::size_t>(gpu)].free(area_at_[a], areas_[a], time);
  }

  int send(int b) {
    const Batch& batch = batch_of(b);
    const int step = append({.type = StepType::send,
                             .gpu = batch.src,
                             .tb = plan_.sender[static_cast<std::size_t>(b)],
                             .batch = b,
                             .src = place_of(batch.from),
                             .src_gpu = batch.src,
                             .dst_gpu = batch.dst});
    std::vector<int> follows;
    logs_[static_cast<std::size_t>(batch.src)].read(step, place_of(batch.from), batch.count, follows);
    wait(step, std::move(follows));
    sender_[static_cast<std::size_t>(b)] = step;
    return step;
  }

  /// A step that does not use its own source or destination has those of its peer, for the reader.
  int receive(int b) {
    const Batch& batch = batch_of(b);
    const int sender = sender_[static_cast<std::size_t>(b)];
    const StepType type = type_of(b);
    const bool writes = msccl::writes_destination(type), reads = msccl::reads_source(type);
    const Range to = writes ? place_of(batch.to) : Range{.buffer = Buffer::scratch, .offset = -1};
    StepNode& sending = graph_.nodes[static_cast<std::size_t>(sender)];
    if (!msccl::writes_destination(sending.type)) {
      sending.dst = writes ? to : place_of(batch.summand);
      sending.dst_gpu = batch.dst;
    }
    const bool is_read =
        msccl::reads_source(sending.type) && sending.type != StepType::receive_reduce_copy_send;
    const Range from = is_read ? sending.src : sending.dst;
    const int step = append({.type = type,
                             .gpu = batch.dst,
                             .tb = plan_.receiver[static_cast<std::size_t>(b)],
                             .batch = b,
                             .src = reads ? place_of(batch.summand) : from,
                             .dst = to,
                             .src_gpu = reads ? batch.dst : batch.src,
                             .dst_gpu = batch.dst,
                             .sender = sender});
    std::vector<int> follows;
    AccessLog& log = logs_[static_cast<std::size_t>(batch.dst)];
    if (reads) log.read(step, place_of(batch.summand), batch.count, follows);
    if (writes) log.write(step, to, batch.count, follows);
    std::erase(follows, step);
    wait(step, std::move(follows));
    if (const int next = passed_on(b); next >= 0) sender_[static_cast<std::size_t>(next)] = step;
    return step;
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

  bool reuse_scratch_;
  const std::vector<Batch>& batches_;
  const std::vector<int>& areas_;
  const Plan& plan_;
  StepGraph graph_;
  std::vector<AccessLog> logs_;   ///< per GPU
  std::vector<Scratch> scratch_;  ///< per GPU
  std::vector<int> last_of_tb_;
  std::vector<int> sender_;     ///< per batch: the step that sends it
  std::vector<int> passed_on_;  ///< per batch: the one that its receiving step sends on
  std::vector<int> area_at_;    ///< per area: where it begins in scratch; -1: it has not been used yet
  std::vector<int> uses_left_;  ///< per area: events that are still to read or write it
};

}  // namespace

StepGraph make_steps(const Traffic& traffic, const Plan& plan, const Layout& layout, bool reuse_scratch) {
  return StepMaker(traffic, plan, layout, reuse_scratch).run();
}

}  // namespace rondo::lowering
