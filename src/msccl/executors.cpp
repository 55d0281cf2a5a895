#include "rondo/msccl/executors.hpp"

#include <fmt/format.h>

#include <algorithm>

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
       .colls = {Coll::allgather, Coll::alltoall, Coll::allreduce, Coll::reduce_scatter, Coll::broadcast,
                 Coll::reduce, Coll::custom},
       .joins_reduce_scatter = false},
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
       .colls = {Coll::allgather, Coll::alltoall, Coll::allreduce, Coll::reduce_scatter, Coll::broadcast,
                 Coll::reduce, Coll::gather, Coll::scatter},
       .joins_reduce_scatter = true},
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

std::optional<std::string> spelling(const Executor& executor, Coll coll) {
  if (std::find(executor.colls.begin(), executor.colls.end(), coll) == executor.colls.end())
    return std::nullopt;
  if (coll == Coll::reduce_scatter && executor.joins_reduce_scatter) return "reducescatter";
  return std::string(to_string(coll));
}

}  // namespace rondo::msccl
