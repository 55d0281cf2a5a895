#include <algorithm>

#include "assemble.hpp"

namespace rondo::lowering {
namespace {

using msccl::Buffer;
using msccl::Executor;
using msccl::place;
using msccl::Program;

const char* const kFewerSteps =
    "use fewer chunks (--chunks of rondo solve), fewer --instances or another engine";

/// Scans a program and keeps the first figure beyond a cap.
class CapCheck {
 public:
  CapCheck(const Program& program, const Executor& executor, int max_steps)
      : program_(program), executor_(executor), max_steps_(max_steps) {}

  std::optional<Excess> run() {
    limit("GPUs", "the program", program_.num_gpus(), executor_.gpus, "use a smaller fabric");
    limit("channels", "the program", program_.num_channels, executor_.channels,
          "use fewer --instances, fewer chunks (--chunks of rondo solve) or --max-peers");
    for (int g = 0; g < program_.num_gpus(); ++g) check_gpu(g);
    for (int g = 0; g < program_.num_gpus(); ++g) check_steps(g);
    return excess_;
  }

 private:
  void limit(const char* cap, const std::string& where, long figure, long allowed, const char* remedy) {
    if (figure <= allowed || excess_) return;
    excess_ = Excess{.cap = cap, .where = where, .figure = figure, .allowed = allowed, .remedy = remedy};
  }

  const msccl::Gpu& gpu(int g) const { return program_.gpus[static_cast<std::size_t>(g)]; }

  void check_gpu(int g) {
    const std::string where = place(g);
    limit("threadblocks of a GPU", where, std::ssize(gpu(g).tbs), executor_.tbs,
          "use --max-peers, which relays what goes to further peers, or fewer chunks (--chunks of rondo "
          "solve) or "
          "--instances");
    const int largest = std::max({gpu(g).input_chunks, gpu(g).output_chunks, gpu(g).scratch_chunks});
    limit("the offset of a step", where, largest - 1, executor_.offset,
          "use fewer chunks (--chunks of rondo solve) or fewer --instances");
    long nodes = 1 + program_.num_gpus() + std::ssize(gpu(g).tbs);
    for (const msccl::ThreadBlock& tb : gpu(g).tbs) {
      nodes += std::ssize(tb.steps);
      for (const msccl::Step& step : tb.steps) {
        limit("chunks of a step", where, step.count, executor_.count,
              "use contributions with a larger common divisor, or more chunks");
        if (step.dependency) {
          limit("the id of a threadblock that others wait for", where, step.dependency->tb,
                executor_.dependency_tb, "use --max-peers or fewer --instances");
        }
      }
    }
    limit("XML nodes in the view of a GPU", where, nodes, executor_.xml_nodes, kFewerSteps);
  }

  void check_steps(int g) {
    for (int t = 0; t < static_cast<int>(gpu(g).tbs.size()); ++t) {
      limit(kStepsCap, place(g, t), std::ssize(gpu(g).tbs[static_cast<std::size_t>(t)].steps), max_steps_,
            kFewerSteps);
    }
  }

  const Program& program_;
  const Executor& executor_;
  int max_steps_;
  std::optional<Excess> excess_;
};

}  // namespace

std::optional<Excess> beyond_caps(const Program& program, const Executor& executor, int max_steps) {
  return CapCheck(program, executor, max_steps).run();
}

}  // namespace rondo::lowering
