#include <algorithm>

#include "stages.hpp"

namespace rondo::xmlcheck {
namespace {

using msccl::Program;
using msccl::Range;
using msccl::Step;

/// Two steps of one GPU that use the same memory.
struct Conflict {
  int earlier = -1;
  int later = -1;
  bool earlier_writes = false;
  bool later_writes = false;
  Range at = {};  ///< as the later step names it
};

/// Collects, GPU by GPU and in one order that all waits allow, each use of a cell together with the last
/// ones that conflict with it. If those pairs are ordered, all are, through them.
class ConflictFinder {
 public:
  ConflictFinder(const Program& program, const WaitGraph& graph, const Memory& memory)
      : program_(program), graph_(graph), memory_(memory), found_(program.gpus.size()) {
    for (int g = 0; g < program.num_gpus(); ++g) cells_.emplace_back(memory.num_cells(g));
    for (const int n : graph.order) {
      const Step& step = graph.step(program, n);
      if (copies_to_itself(n, step)) continue;
      const bool writes = msccl::writes_destination(step.type);
      if (msccl::reads_source(step.type)) use(n, step.src, step.count, false);
      if (step.type == msccl::StepType::reduce) use(n, step.dst, step.count, false);
      if (writes) use(n, step.dst, step.count, true);
    }
  }

  const std::vector<Conflict>& of_gpu(int g) const { return found_[static_cast<std::size_t>(g)]; }

 private:
  struct Cell {
    int writer = -1;
    std::vector<int> readers{};
  };

  /// A GPU's own part, in place: the bytes stay what they are.
  bool copies_to_itself(int n, const Step& step) const {
    const int g = graph_.steps[static_cast<std::size_t>(n)].gpu;
    return step.type == msccl::StepType::copy && memory_.cell(g, step.src.buffer, step.src.offset) ==
                                                     memory_.cell(g, step.dst.buffer, step.dst.offset);
  }

  void use(int n, const Range& range, int count, bool writes) {
    const int g = graph_.steps[static_cast<std::size_t>(n)].gpu;
    const std::size_t begin = memory_.cell(g, range.buffer, range.offset);
    for (int i = 0; i < count; ++i) {
      Cell& cell = cells_[static_cast<std::size_t>(g)][begin + static_cast<std::size_t>(i)];
      const Range at = {.buffer = range.buffer, .offset = range.offset + i};
      if (cell.writer >= 0) add(g, {cell.writer, n, true, writes, at});
      if (writes) {
        for (const int reader : cell.readers) add(g, {reader, n, false, true, at});
        cell.readers.clear();
        cell.writer = n;
      } else {
        cell.readers.push_back(n);
      }
    }
  }

  void add(int g, const Conflict& conflict) {
    const StepRef& a = graph_.steps[static_cast<std::size_t>(conflict.earlier)];
    const StepRef& b = graph_.steps[static_cast<std::size_t>(conflict.later)];
    auto& mine = found_[static_cast<std::size_t>(g)];
    const bool repeated = !mine.empty() && mine.back().earlier == conflict.earlier &&
                          mine.back().later == conflict.later &&
                          mine.back().later_writes == conflict.later_writes;
    if (a.tb != b.tb && !repeated) mine.push_back(conflict);
  }

  const Program& program_;
  const WaitGraph& graph_;
  const Memory& memory_;
  std::vector<std::vector<Cell>> cells_;
  std::vector<std::vector<Conflict>> found_;  ///< per GPU
};

/// Clocks of one GPU's threadblocks: how many of its steps have surely ended when a step ends.
class Clocks {
 public:
  Clocks(const Program& program, const WaitGraph& graph, int gpu)
      : graph_(graph),
        width_(program.gpus[static_cast<std::size_t>(gpu)].tbs.size()),
        ticks_(graph.size() * width_, 0) {
    for (const int n : graph.order) {
      const auto i = static_cast<std::size_t>(n);
      for (const int before : {graph.previous[i], graph.dependency[i], graph.sender[i]}) {
        if (before == WaitGraph::kNone) continue;
        const auto from =
            ticks_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(before) * width_);
        const auto to = ticks_.begin() + static_cast<std::ptrdiff_t>(i * width_);
        std::transform(from, from + static_cast<std::ptrdiff_t>(width_), to, to,
                       [](int a, int b) { return std::max(a, b); });
      }
      const StepRef& ref = graph.steps[i];
      if (ref.gpu == gpu) ticks_[i * width_ + static_cast<std::size_t>(ref.tb)] = ref.step + 1;
    }
  }

  bool ended_before(int earlier, int later) const {
    const StepRef& ref = graph_.steps[static_cast<std::size_t>(earlier)];
    return ticks_[static_cast<std::size_t>(later) * width_ + static_cast<std::size_t>(ref.tb)] > ref.step;
  }

 private:
  const WaitGraph& graph_;
  std::size_t width_;
  std::vector<int> ticks_;
};

}  // namespace

void check_races(const Program& program, const WaitGraph& graph, const Memory& memory, Findings& findings) {
  const ConflictFinder conflicts(program, graph, memory);
  for (int g = 0; g < program.num_gpus(); ++g) {
    if (conflicts.of_gpu(g).empty()) continue;
    const Clocks clocks(program, graph, g);
    for (const Conflict& conflict : conflicts.of_gpu(g)) {
      if (clocks.ended_before(conflict.earlier, conflict.later)) continue;
      findings.add(graph.place(conflict.later), "{} {}[{}]{}, which {} {}, and neither waits for the other",
                   conflict.later_writes ? "writes" : "reads", to_string(conflict.at.buffer),
                   conflict.at.offset, memory.in_place() ? " (in place)" : "", graph.place(conflict.earlier),
                   conflict.earlier_writes ? "writes" : "reads");
    }
  }
}

}  // namespace rondo::xmlcheck
