#include "rondo/msccl/executors.hpp"

#include <fmt/format.h>

#include "rondo/core/error.hpp"

namespace rondo::msccl {

const std::vector<Executor>& executors() {
  static const std::vector<Executor> all = {
      {.name = "msccl",
       .description = "microsoft/msccl",
       .steps = 256,
       .tbs = 216,
       .dependency_tb = 127,
       .channels = 32,
       .connections = 32,
       .count = 71,
       .offset = 32767,
       .xml_nodes = 4096,
       .gpus = 1024,
       .name_length = 63,
       .colls = {"allgather", "alltoall", "allreduce", "reduce_scatter", "broadcast", "reduce", "custom"}},
      {.name = "msccl-executor-nccl",
       .description = "Azure/msccl-executor-nccl, as shipped",
       .steps = 64,
       .tbs = 1024,
       .dependency_tb = 127,
       .channels = 32,
       .connections = 32,
       .count = 71,
       .offset = 32767,
       .xml_nodes = 4096,
       .gpus = 1024,
       .name_length = 255,
       .colls = {"allgather", "alltoall", "allreduce", "reducescatter", "broadcast", "reduce", "gather",
                 "scatter"}},
  };
  return all;
}

const Executor& find_executor(std::string_view name) {
  std::string known;
  for (const Executor& executor : executors()) {
    if (executor.name == name) return executor;
    if (!known.empty()) known += ", ";
    known += executor.name;
  }
  throw Error(ExitCode::usage, fmt::format("the executor is '{}'; known are: {}", name, known));
}

std::optional<std::string_view> spelling(const Executor& executor, Collective coll) {
  for (const std::string_view name : executor.colls) {
    if (find_collective(name) == coll) return name;
  }
  return std::nullopt;
}

}  // namespace rondo::msccl
