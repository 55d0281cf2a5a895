#include "assemble.hpp"

#include <algorithm>

namespace rondo::lowering {
namespace {

using msccl::Buffer;
using msccl::Dependency;
using msccl::Range;
using msccl::Step;
using msccl::StepType;
using msccl::ThreadBlock;

class Assembler {
 public:
  Assembler(const StepGraph& graph, const std::vector<Batch>& batches, const Plan& plan, int instances,
            MulticastSteps& multicasts)
      : graph_(graph),
        batches_(batches),
        plan_(plan),
        multicasts_(multicasts),
        steps_of_(plan.tbs.size()),
        number_(graph.nodes.size(), 0),
        has_dependents_(graph.nodes.size(), 0),
        id_(static_cast<std::size_t>(instances), std::vector<int>(plan.tbs.size(), -1)) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const StepNode& node = graph.nodes[n];
      auto& mine = steps_of_[static_cast<std::size_t>(node.tb)];
      // One wait a step; nops before it carry the others.
      const int before = mine.empty() ? 0 : number_[static_cast<std::size_t>(mine.back())] + 1;
      const int nops = std::max(0, static_cast<int>(node.waits_for.size()) - 1);
      number_[n] = before + nops;
      mine.push_back(static_cast<int>(n));
      for (const int other : node.waits_for) has_dependents_[static_cast<std::size_t>(other)] = 1;
    }
  }

  void append_tbs(std::vector<msccl::Gpu>& gpus) {
    // Executors keep the id of a threadblock that others wait for in few bits.
    for (const bool awaited : {true, false}) {
      for (std::size_t instance = 0; instance < id_.size(); ++instance) {
        for (std::size_t t = 0; t < plan_.tbs.size(); ++t) {
          if (is_awaited(t) != awaited) continue;
          auto& tbs = gpus[static_cast<std::size_t>(plan_.tbs[t].gpu)].tbs;
          id_[instance][t] = static_cast<int>(tbs.size());
          const Owner& owner = plan_.tbs[t];
          tbs.push_back({.send_peer = owner.send_peer,
                         .recv_peer = owner.recv_peer,
                         .channel = owner.channel + static_cast<int>(instance) * plan_.num_channels});
        }
      }
    }
    for (std::size_t instance = 0; instance < id_.size(); ++instance) {
      for (std::size_t t = 0; t < plan_.tbs.size(); ++t) {
        const auto id = static_cast<std::size_t>(id_[instance][t]);
        fill(gpus[static_cast<std::size_t>(plan_.tbs[t].gpu)].tbs[id], t, instance);
        note_multicasts(t, instance);
      }
    }
  }

 private:
  const StepNode& node(int n) const { return graph_.nodes[static_cast<std::size_t>(n)]; }

  bool is_awaited(std::size_t t) const {
    return std::any_of(steps_of_[t].begin(), steps_of_[t].end(),
                       [&](int n) { return has_dependents_[static_cast<std::size_t>(n)] != 0; });
  }

  Range shifted(Range range, int gpu, const Batch& batch, std::size_t instance) const {
    const int stride = range.buffer == Buffer::scratch ? graph_.scratch_chunks[static_cast<std::size_t>(gpu)]
                                                       : batch.instance_stride;
    range.offset += static_cast<int>(instance) * stride;
    return range;
  }

  void note_multicasts(std::size_t t, std::size_t instance) {
    for (const int n : steps_of_[t]) {
      const StepNode& step = node(n);
      const int multicast = batches_[static_cast<std::size_t>(step.batch)].multicast;
      if (!msccl::sends(step.type) || multicast < 0) continue;
      multicasts_[{multicast, static_cast<int>(instance)}].emplace_back(step.gpu, id_[instance][t],
                                                                        number_[static_cast<std::size_t>(n)]);
    }
  }

  void fill(ThreadBlock& tb, std::size_t t, std::size_t instance) const {
    for (const int n : steps_of_[t]) {
      const StepNode& step = node(n);
      const Batch& batch = batches_[static_cast<std::size_t>(step.batch)];
      std::vector<Dependency> waits;
      for (const int other : step.waits_for) {
        waits.push_back({.tb = id_[instance][static_cast<std::size_t>(node(other).tb)],
                         .step = number_[static_cast<std::size_t>(other)]});
      }
      for (std::size_t w = 0; w + 1 < waits.size(); ++w) {
        tb.steps.push_back({.type = StepType::nop,
                            .src = {.buffer = Buffer::input, .offset = -1},
                            .dst = {.buffer = Buffer::output, .offset = -1},
                            .dependency = waits[w]});
      }
      tb.steps.push_back({.type = step.type,
                          .src = shifted(step.src, step.src_gpu, batch, instance),
                          .dst = shifted(step.dst, step.dst_gpu, batch, instance),
                          .count = batch.count,
                          .has_dependents = has_dependents_[static_cast<std::size_t>(n)] != 0});
      if (!waits.empty()) tb.steps.back().dependency = waits.back();
    }
  }

  const StepGraph& graph_;
  const std::vector<Batch>& batches_;
  const Plan& plan_;
  MulticastSteps& multicasts_;
  std::vector<std::vector<int>> steps_of_;  ///< per threadblock of the plan
  std::vector<int> number_;                 ///< per step: in its threadblock, nops counted
  std::vector<char> has_dependents_;
  std::vector<std::vector<int>> id_;  ///< per instance and threadblock of the plan
};

}  // namespace

std::vector<msccl::Gpu> assemble(const StepGraph& graph, const std::vector<Batch>& batches, const Plan& plan,
                                 const Layout& layout, int instances, int max_count,
                                 MulticastSteps& multicasts) {
  std::vector<msccl::Gpu> gpus(static_cast<std::size_t>(layout.num_gpus()));
  for (int g = 0; g < layout.num_gpus(); ++g) {
    msccl::Gpu& gpu = gpus[static_cast<std::size_t>(g)];
    gpu.input_chunks = layout.input_chunks(g);
    gpu.output_chunks = layout.output_chunks(g);
    gpu.scratch_chunks = instances * graph.scratch_chunks[static_cast<std::size_t>(g)];
  }
  Assembler(graph, batches, plan, instances, multicasts).append_tbs(gpus);
  for (const OwnCopy& own : layout.own_copies()) {
    ThreadBlock tb;
    for (int done = 0; done < own.count; done += max_count) {
      Step step = {.type = StepType::copy,
                   .src = own.src,
                   .dst = own.dst,
                   .count = std::min(max_count, own.count - done)};
      step.src.offset += done;
      step.dst.offset += done;
      tb.steps.push_back(step);
    }
    gpus[static_cast<std::size_t>(own.gpu)].tbs.push_back(std::move(tb));
  }
  return gpus;
}

}  // namespace rondo::lowering
