#include "rondo/msccl/program.hpp"

#include <fmt/format.h>

#include "names.hpp"
#include "rondo/core/error.hpp"

namespace rondo::msccl {

BufferChunks buffer_chunks(const Program& program, int gpu) {
  if (program.coll == Collective::custom) {
    const Gpu& mine = program.gpus[static_cast<std::size_t>(gpu)];
    return {.input = mine.input_chunks, .output = mine.output_chunks};
  }
  const std::size_t gpus = program.gpus.size();
  const int part = program.chunks_per_loop / static_cast<int>(program.coll->num_parts(gpus));
  return {.input = part * static_cast<int>(program.coll->input_parts(gpus)),
          .output = part * static_cast<int>(program.coll->output_parts(gpus))};
}

bool reads_source(StepType type) {
  return type == StepType::send || type == StepType::copy || type == StepType::reduce ||
         type == StepType::receive_reduce_copy || type == StepType::receive_reduce_send ||
         type == StepType::receive_reduce_copy_send;
}

bool writes_destination(StepType type) {
  return type == StepType::receive || type == StepType::copy || type == StepType::reduce ||
         type == StepType::receive_copy_send || type == StepType::receive_reduce_copy ||
         type == StepType::receive_reduce_copy_send;
}

bool sends(StepType type) {
  return type == StepType::send || type == StepType::receive_copy_send ||
         type == StepType::receive_reduce_send || type == StepType::receive_reduce_copy_send;
}

bool receives(StepType type) {
  return type == StepType::receive || type == StepType::receive_copy_send ||
         type == StepType::receive_reduce_copy || type == StepType::receive_reduce_send ||
         type == StepType::receive_reduce_copy_send;
}

std::string_view to_string(Buffer buffer) {
  return name_of(buffer, kBufferNames);
}

std::string_view to_string(StepType type) {
  return name_of(type, kStepNames);
}

std::string_view to_string(Protocol protocol) {
  return name_of(protocol, kProtocolNames);
}

Protocol parse_protocol(std::string_view name) {
  if (const auto protocol = value_of(name, kProtocolNames)) return *protocol;
  throw Error(ExitCode::usage,
              fmt::format("the protocol is '{}'; known are: {}", name, list_of(kProtocolNames)));
}

std::string place(int gpu, int tb, int step) {
  std::string text = fmt::format("gpu {}", gpu);
  if (tb >= 0) text += fmt::format(" tb {}", tb);
  if (step >= 0) text += fmt::format(" step {}", step);
  return text;
}

}  // namespace rondo::msccl
