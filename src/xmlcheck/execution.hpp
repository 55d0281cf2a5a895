#pragma once

#include <vector>

#include "stages.hpp"
#include "values.hpp"

namespace rondo::xmlcheck {

/// Runs a program without races on symbols, in one of the orders that its waits allow: all give the same.
class Execution {
 public:
  Execution(const msccl::Program& program, const WaitGraph& graph, const Memory& memory, Findings& findings)
      : program_(program), graph_(graph), memory_(memory), findings_(findings), message_(graph.size()) {
    for (int g = 0; g < program.num_gpus(); ++g) {
      cells_.emplace_back(memory.num_cells(g), Values::kUndefined);
      for (int i = 0; i < msccl::buffer_chunks(program, g).input; ++i)
        at(g, msccl::Buffer::input, i) = values.input(g, i);
    }
  }

  /// `gpu` has the same datum at `offset` of its input as `other` at `other_offset`.
  void hold_the_same(int gpu, int offset, int other, int other_offset) {
    at(gpu, msccl::Buffer::input, offset) = values.input(other, other_offset);
  }

  void run() {
    for (const int n : graph_.order) run(n);
  }

  /// What the message holds that step `n` sends: nothing before it ran, and after it was received.
  const std::vector<Values::Id>& message(int n) const { return message_[static_cast<std::size_t>(n)]; }
  void run(int n);
  Values::Id output(int gpu, int offset) { return at(gpu, msccl::Buffer::output, offset); }

  Values values;

 private:
  Values::Id& at(int gpu, msccl::Buffer buffer, int offset) {
    return cells_[static_cast<std::size_t>(gpu)][memory_.cell(gpu, buffer, offset)];
  }

  Values::Id read(int n, const msccl::Range& range, int i) {
    const int offset = range.offset + i;
    const Values::Id value = at(graph_.steps[static_cast<std::size_t>(n)].gpu, range.buffer, offset);
    if (value == Values::kUndefined) {
      findings_.add(graph_.place(n), "reads {}[{}], which nothing has written yet", to_string(range.buffer),
                    offset);
    }
    return value;
  }

  const msccl::Program& program_;
  const WaitGraph& graph_;
  const Memory& memory_;
  Findings& findings_;
  std::vector<std::vector<Values::Id>> cells_;    ///< per GPU
  std::vector<std::vector<Values::Id>> message_;  ///< per sending step: what is on its way
};

}  // namespace rondo::xmlcheck
