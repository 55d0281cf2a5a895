#include <algorithm>
#include <cmath>

#include "execution.hpp"

namespace rondo::xmlcheck {
namespace {

using msccl::Buffer;
using msccl::Program;
using msccl::Range;
using msccl::Step;
using msccl::StepType;

/// Where the contributions of a custom demand stand: in its order, inputs and outputs filled one after
/// another.
struct CustomPlaces {
  struct Part {
    int length = 0;
    bool is_sum = false;
    std::vector<std::pair<int, int>> inputs = {};   ///< (gpu, beginning), one a source
    std::vector<std::pair<int, int>> outputs = {};  ///< (gpu, beginning), one a destination
  };
  std::vector<Part> parts = {};
};

/// Finds them from the sizes of the inputs, which have to be filled by the contributions.
std::optional<CustomPlaces> places_of(const Program& program, const Demand& demand, Findings& findings) {
  if (demand.num_gpus() != program.gpus.size()) {
    findings.add("algo", "ngpus is {}, but the demand is for {}", program.num_gpus(), demand.num_gpus());
    return std::nullopt;
  }
  double bytes = 0;
  for (const Contribution& c : demand.contributions())
    bytes += c.bytes * static_cast<double>(c.all_sources().size());
  double chunks = 0;
  for (const msccl::Gpu& gpu : program.gpus) chunks += gpu.input_chunks;
  std::vector<int> input_used(demand.num_gpus(), 0), output_used(demand.num_gpus(), 0);
  CustomPlaces places;
  for (std::size_t j = 0; j < demand.contributions().size(); ++j) {
    const Contribution& contribution = demand.contributions()[j];
    const double exact = contribution.bytes * chunks / bytes;
    const int length = static_cast<int>(std::lround(exact));
    if (length < 1 || std::abs(exact - length) > 1e-6 * exact) {
      findings.add("algo", "contribution {} would be {:.6g} of the inputs' {} chunks; it has to be whole", j,
                   exact, chunks);
      return std::nullopt;
    }
    CustomPlaces::Part part{.length = length, .is_sum = contribution.reduce};
    const auto place = [&](GpuId gpu, const char* buffer, int room, int& used) {
      if (used + length > room)
        findings.add(msccl::place(gpu.value), "{} is {}, too few for contribution {}", buffer, room, j);
      used += length;
      return std::pair(gpu.value, used - length);
    };
    for (const GpuId g : contribution.all_sources())
      part.inputs.push_back(
          place(g, "i_chunks", program.gpus[g.index()].input_chunks, input_used[g.index()]));
    for (const GpuId g : contribution.destinations)
      part.outputs.push_back(
          place(g, "o_chunks", program.gpus[g.index()].output_chunks, output_used[g.index()]));
    if (findings.any()) return std::nullopt;
    places.parts.push_back(std::move(part));
  }
  return places;
}

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

  void check_custom(const CustomPlaces& places) {
    for (const CustomPlaces::Part& part : places.parts) {
      for (const auto& [to, begin] : part.outputs) {
        for (int i = 0; i < part.length; ++i) {
          Values::Id expected = Values::kUndefined;
          for (const auto& [from, first] : part.inputs) {
            expected = execution_.values.sum(expected, input(from, first + i));
            if (!part.is_sum) break;
          }
          expect(to, begin + i, expected);
        }
      }
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
  const bool is_custom = program.coll == Collective::custom;
  std::optional<CustomPlaces> places;
  if (is_custom && options.demand) {
    places = places_of(program, *options.demand, findings);
    if (!places) return;
  }
  Execution execution(program, graph, memory, findings);
  if (places) {
    for (const CustomPlaces::Part& part : places->parts) {
      const auto& [first, begin] = part.inputs.front();
      for (const auto& [gpu, offset] : part.inputs) {
        for (int i = 0; i < part.length && !part.is_sum; ++i)
          execution.hold_the_same(gpu, offset + i, first, begin + i);
      }
    }
  }
  execution.run();
  if (findings.any()) return;
  Postcondition postcondition(program, memory.in_place(), execution, findings);
  postcondition.check(result);
  if (!is_custom) return;
  result.knows_result = places.has_value();
  if (places) postcondition.check_custom(*places);
}

}  // namespace rondo::xmlcheck
