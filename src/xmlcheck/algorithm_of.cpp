#include "rondo/xmlcheck/algorithm_of.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "execution.hpp"
#include "rondo/core/error.hpp"

namespace rondo::xmlcheck {
namespace {

/// The data of the program's collective, each in as many chunks as a part of the program has.
class ProgramData {
 public:
  ProgramData(const msccl::Program& program, GpuId root, double size_bytes)
      : reduces_(program.coll->reduces),
        per_part_(program.chunks_per_loop / static_cast<int>(program.coll->num_parts(program.gpus.size()))) {
    const std::size_t gpus = program.gpus.size();
    std::vector<Datum> data;
    program.coll->for_each_output_part(gpus, root.index(), [&](const OutputPart& to, const InputPart& from) {
      const auto [at, is_new] = position_.try_emplace({from.gpu, from.part}, data.size());
      if (is_new) {
        Datum datum{.reduce = reduces_};
        for (std::size_t g = 0; g < gpus; ++g) {
          if (reduces_ || g == from.gpu) datum.sources.emplace_back(g);
        }
        for (int k = 0; k < per_part_; ++k) data.push_back(datum);
      }
      for (int k = 0; k < per_part_; ++k) {
        if (reduces_ || to.gpu != from.gpu)
          data[at->second + static_cast<std::size_t>(k)].destinations.emplace_back(to.gpu);
      }
    });
    recognised_.emplace(recognise(data, gpus, size_bytes, program.coll));
  }

  const Demand& demand() const { return recognised_->demand; }

  /// Of what a cell holds; invalid where nobody wants it.
  ChunkId chunk_of(const Values::Terms& terms) const {
    const auto& [gpu, offset] = terms.front().first;
    const std::size_t from = reduces_ ? InputPart::kSumOfAll : static_cast<std::size_t>(gpu);
    const auto known = position_.find({from, static_cast<std::size_t>(offset / per_part_)});
    if (known == position_.end()) return {};
    return recognised_->chunks[known->second + static_cast<std::size_t>(offset % per_part_)];
  }

 private:
  bool reduces_;
  int per_part_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> position_;  ///< of (GPU, part) among the data
  std::optional<RecognisedData> recognised_;
};

/// Per step of the graph, after how many messages one after another its own message leaves.
std::vector<int> message_steps(const msccl::Program& program, const WaitGraph& graph) {
  std::vector<int> end(graph.size(), 0);
  for (const int n : graph.order) {
    const auto i = static_cast<std::size_t>(n);
    for (const int before : {graph.previous[i], graph.dependency[i], graph.made_room[i]}) {
      if (before != WaitGraph::kNone) end[i] = std::max(end[i], end[static_cast<std::size_t>(before)]);
    }
    if (msccl::receives(graph.step(program, n).type))
      end[i] = std::max(end[i], end[static_cast<std::size_t>(graph.sender[i])] + 1);
  }
  return end;
}

std::string text_of(const Finding& finding) {
  return fmt::format("{}: {}", finding.where, finding.what);
}

}  // namespace

Algorithm algorithm_of(const msccl::Program& program, double size_bytes) {
  if (program.coll == Collective::custom) {
    throw Error(ExitCode::unavailable,
                "coll is custom, which does not say what the program moves; give one of a named collective");
  }
  const CheckOptions options;
  CheckResult result = check(program, options);
  if (!result.valid()) {
    throw Error(ExitCode::bad_data, fmt::format("{} findings, the first: {}; rondo check-xml lists them",
                                                result.num_findings, text_of(result.findings.front())));
  }
  Findings findings(result, options.max_findings);
  WaitGraph graph = build_wait_graph(program, options.fifo_depth, findings);
  sort_steps(graph, findings);
  const Memory memory(program, !program.out_of_place);
  Execution execution(program, graph, memory, findings);
  const std::vector<int> step = message_steps(program, graph);
  const ProgramData data(program, GpuId(result.root.value_or(0)), size_bytes);
  Algorithm algorithm{program.name, data.demand(), {}};
  std::vector<int> senders;
  for (const int n : graph.order) {
    if (msccl::receives(graph.step(program, n).type)) {
      const int sender = graph.sender[static_cast<std::size_t>(n)];
      for (const Values::Id value : execution.message(sender)) {
        const ChunkId chunk = data.chunk_of(execution.values.terms(value));
        if (!chunk.valid()) continue;
        algorithm.sends.push_back({chunk, GpuId(graph.steps[static_cast<std::size_t>(sender)].gpu),
                                   GpuId(graph.steps[static_cast<std::size_t>(n)].gpu),
                                   step[static_cast<std::size_t>(sender)], sender});
      }
    }
    execution.run(n);
  }
  std::ranges::stable_sort(algorithm.sends, {}, &AlgorithmSend::step);
  settle(algorithm, [&](std::size_t i) { return graph.place(algorithm.sends[i].message); });
  return algorithm;
}

}  // namespace rondo::xmlcheck
