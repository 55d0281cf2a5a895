#include <algorithm>
#include <cmath>

#include "stages.hpp"
#include "values.hpp"

namespace rondo::xmlcheck {
namespace {

using msccl::Buffer;
using msccl::Program;
using msccl::Range;
using msccl::Step;
using msccl::StepType;

/// Runs a program without races on symbols, in one of the orders that its waits allow: all give the same.
class Execution {
 public:
  Execution(const Program& program, const WaitGraph& graph, const Memory& memory, Findings& findings)
      : program_(program), graph_(graph), memory_(memory), findings_(findings), message_(graph.size()) {
    for (int g = 0; g < program.num_gpus(); ++g) {
      cells_.emplace_back(memory.num_cells(g), Values::kUndefined);
      for (int i = 0; i < msccl::buffer_chunks(program, g).input; ++i)
        at(g, Buffer::input, i) = values.input(g, i);
    }
    for (const int n : graph.order) run(n);
  }

  Values::Id output(int gpu, int offset) { return at(gpu, Buffer::output, offset); }

  Values values;

 private:
  Values::Id& at(int gpu, Buffer buffer, int offset) {
    return cells_[static_cast<std::size_t>(gpu)][memory_.cell(gpu, buffer, offset)];
  }

  Values::Id read(int n, const Range& range, int i) {
    const int offset = range.offset + i;
    const Values::Id value = at(graph_.steps[static_cast<std::size_t>(n)].gpu, range.buffer, offset);
    if (value == Values::kUndefined) {
      findings_.add(graph_.place(n), "reads {}[{}], which nothing has written yet", to_string(range.buffer),
                    offset);
    }
    return value;
  }

  void run(int n) {
    const Step& step = graph_.step(program_, n);
    if (step.type == StepType::nop) return;
    const int gpu = graph_.steps[static_cast<std::size_t>(n)].gpu;
    std::vector<Values::Id> data(static_cast<std::size_t>(step.count), Values::kUndefined);
    if (msccl::receives(step.type)) {
      data = std::move(message_[static_cast<std::size_t>(graph_.sender[static_cast<std::size_t>(n)])]);
    }
    for (int i = 0; i < step.count; ++i) {
      Values::Id& value = data[static_cast<std::size_t>(i)];
      if (msccl::reads_source(step.type)) {
        const Values::Id source = read(n, step.src, i);
        value = msccl::receives(step.type) ? values.sum(value, source) : source;
      }
      if (step.type == StepType::reduce) value = values.sum(value, read(n, step.dst, i));
      if (msccl::writes_destination(step.type)) at(gpu, step.dst.buffer, step.dst.offset + i) = value;
    }
    if (msccl::sends(step.type)) message_[static_cast<std::size_t>(n)] = std::move(data);
  }

  const Program& program_;
  const WaitGraph& graph_;
  const Memory& memory_;
  Findings& findings_;
  std::vector<std::vector<Values::Id>> cells_;    ///< per GPU
  std::vector<std::vector<Values::Id>> message_;  ///< per sending step: what is on its way
};

/// What the outputs have to hold.
class Postcondition {
 public:
  Postcondition(const Program& program, bool in_place, Execution& execution, Findings& findings)
      : program_(program),
        gpus_(program.num_gpus()),
        in_place_(in_place),
        execution_(execution),
        findings_(findings) {}

  void check(CheckResult& result) {
    const Collective collective = program_.coll;
    const std::size_t gpus = program_.gpus.size();
    const int part = program_.chunks_per_loop / static_cast<int>(collective->num_parts(gpus));
    if (collective->has_root) result.root = collective->output.at_root_only ? fullest() : source_of_all();
    collective->for_each_output_part(
        gpus, static_cast<std::size_t>(result.root.value_or(0)),
        [&](const OutputPart& to, const InputPart& from) {
          const int begin = static_cast<int>(to.part) * part, source = static_cast<int>(from.part) * part;
          for (int i = 0; i < part; ++i) {
            expect(static_cast<int>(to.gpu), begin + i,
                   from.gpu == InputPart::kSumOfAll ? sum(source + i)
                                                    : input(static_cast<int>(from.gpu), source + i));
          }
        });
  }

  /// Every contribution in the order of the demand, inputs and outputs filled one after another.
  void check_custom(const Demand& demand) {
    if (demand.num_gpus() != static_cast<std::size_t>(gpus_)) {
      findings_.add("algo", "ngpus is {}, but the demand is for {}", gpus_, demand.num_gpus());
      return;
    }
    double bytes = 0;
    for (const Contribution& contribution : demand.contributions()) bytes += contribution.bytes;
    double chunks = 0;
    for (const msccl::Gpu& gpu : program_.gpus) chunks += gpu.input_chunks;
    std::vector<int> input_used(demand.num_gpus(), 0), output_used(demand.num_gpus(), 0);
    for (std::size_t j = 0; j < demand.contributions().size(); ++j) {
      const Contribution& contribution = demand.contributions()[j];
      const double exact = contribution.bytes * chunks / bytes;
      const int length = static_cast<int>(std::lround(exact));
      if (length < 1 || std::abs(exact - length) > 1e-6 * exact) {
        findings_.add("algo", "contribution {} would be {:.6g} of the inputs' {} chunks; it has to be whole",
                      j, exact, chunks);
        return;
      }
      int& from = input_used[contribution.origin.index()];
      for (const GpuId to : contribution.destinations) {
        int& begin = output_used[to.index()];
        const int room = program_.gpus[to.index()].output_chunks;
        if (begin + length > room) {
          findings_.add(msccl::place(to.value), "o_chunks is {}, too few for contribution {}", room, j);
          return;
        }
        for (int i = 0; i < length; ++i) {
          expect(to.value, begin + i, input(contribution.origin.value, from + i));
        }
        begin += length;
      }
      from += length;
    }
  }

 private:
  Values::Id input(int gpu, int offset) { return execution_.values.input(gpu, offset); }
  Values::Id sum(int offset) {
    Values::Id total = Values::kUndefined;
    for (int g = 0; g < gpus_; ++g) total = execution_.values.sum(total, input(g, offset));
    return total;
  }

  void expect(int gpu, int offset, Values::Id expected) {
    const Values::Id found = execution_.output(gpu, offset);
    if (found == expected) return;
    findings_.add(msccl::place(gpu), "o[{}] ends with {}, but {}{} asks for {}", offset,
                  execution_.values.describe(found), to_string(program_.coll), in_place_ ? " in place" : "",
                  execution_.values.describe(expected));
  }

  /// The file does not name a root: it is whose data the first output has.
  int source_of_all() {
    for (int g = 0; g < gpus_; ++g) {
      const Values::Id first = execution_.output(g, 0);
      if (first != Values::kUndefined) return execution_.values.terms(first).front().first.first;
    }
    return 0;
  }
  /// The GPU whose output has the most that is not only its own.
  int fullest() {
    int best = 0;
    std::size_t most = 0;
    for (int g = 0; g < gpus_; ++g) {
      std::size_t foreign = 0;
      for (int i = 0; i < program_.chunks_per_loop; ++i) {
        for (const auto& [chunk, times] : execution_.values.terms(execution_.output(g, i))) {
          if (chunk.first != g) ++foreign;
        }
      }
      if (foreign > most) {
        best = g;
        most = foreign;
      }
    }
    return best;
  }

  const Program& program_;
  int gpus_;
  bool in_place_;
  Execution& execution_;
  Findings& findings_;
};

}  // namespace

void check_result(const Program& program, const WaitGraph& graph, const Memory& memory,
                  const CheckOptions& options, CheckResult& result, Findings& findings) {
  Execution execution(program, graph, memory, findings);
  if (findings.any()) return;
  Postcondition postcondition(program, memory.in_place(), execution, findings);
  postcondition.check(result);
  if (program.coll != Collective::custom) return;
  result.knows_result = options.demand != nullptr;
  if (options.demand) postcondition.check_custom(*options.demand);
}

}  // namespace rondo::xmlcheck
