#pragma once

#include <array>
#include <vector>

#include "findings.hpp"

namespace rondo::xmlcheck {

void check_structure(const msccl::Program& program, Findings& findings);
void check_caps(const msccl::Program& program, const msccl::Executor& executor, Findings& findings);

/// A step by its numbers.
struct StepRef {
  int gpu = -1;
  int tb = -1;
  int step = -1;
};

/// All steps under one numbering, and what each waits for.
struct WaitGraph {
  static constexpr int kNone = -1;
  std::vector<StepRef> steps = {};
  std::vector<int> previous = {};    ///< the step before, in its threadblock
  std::vector<int> dependency = {};  ///< the step that depid and deps name
  std::vector<int> sender = {};      ///< of what it receives
  std::vector<int> made_room = {};   ///< the receive that makes room for what it sends
  std::vector<int> order = {};       ///< all steps, each after what it waits for

  std::size_t size() const { return steps.size(); }
  const msccl::Step& step(const msccl::Program& program, int n) const {
    const StepRef& ref = steps[static_cast<std::size_t>(n)];
    return program.gpus[static_cast<std::size_t>(ref.gpu)]
        .tbs[static_cast<std::size_t>(ref.tb)]
        .steps[static_cast<std::size_t>(ref.step)];
  }
  std::string place(int n) const {
    const StepRef& ref = steps[static_cast<std::size_t>(n)];
    return msccl::place(ref.gpu, ref.tb, ref.step);
  }
};

/// Pairs sends and receives; `order` is left empty.
WaitGraph build_wait_graph(const msccl::Program& program, int fifo_depth, Findings& findings);
/// Finds `order`, or a ring of steps that wait for each other.
void sort_steps(WaitGraph& graph, Findings& findings);

/// The memory of all GPUs as one array of cells per GPU, for one placement.
class Memory {
 public:
  Memory(const msccl::Program& program, bool in_place);
  std::size_t num_cells(int gpu) const { return areas_[static_cast<std::size_t>(gpu)].size; }
  std::size_t cell(int gpu, msccl::Buffer buffer, int offset) const {
    const Area& area = areas_[static_cast<std::size_t>(gpu)];
    return area.begin[static_cast<std::size_t>(buffer)] + static_cast<std::size_t>(offset);
  }
  bool in_place() const { return in_place_; }

 private:
  struct Area {
    std::array<std::size_t, 3> begin = {};  ///< per buffer: the cell of its chunk 0
    std::size_t size = 0;
  };
  std::vector<Area> areas_;
  bool in_place_;
};

void check_races(const msccl::Program& program, const WaitGraph& graph, const Memory& memory,
                 Findings& findings);
void check_result(const msccl::Program& program, const WaitGraph& graph, const Memory& memory,
                  const CheckOptions& options, CheckResult& result, Findings& findings);

}  // namespace rondo::xmlcheck
