#include "rondo/msccl/program.hpp"

#include <fmt/format.h>

#include "names.hpp"
#include "rondo/core/error.hpp"

namespace rondo::msccl {

Coll coll_of(Collective collective) {
  switch (collective) {
    case Collective::allgather:
      return Coll::allgather;
    case Collective::alltoall:
      return Coll::alltoall;
    case Collective::broadcast:
      return Coll::broadcast;
    case Collective::scatter:
      return Coll::scatter;
    case Collective::gather:
      return Coll::gather;
    case Collective::custom:
      break;
  }
  return Coll::custom;
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

std::string_view to_string(Coll coll) {
  return name_of(coll, kCollNames);
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
