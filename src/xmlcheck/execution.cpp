#include "execution.hpp"

namespace rondo::xmlcheck {

using msccl::Step;
using msccl::StepType;

void Execution::run(int n) {
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

}  // namespace rondo::xmlcheck
