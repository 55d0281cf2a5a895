#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/msccl/program.hpp"

namespace rondo::msccl {

/// What an executor reads, and how much of it (FORMATS.md 5). Figures are the largest that it takes.
struct Executor {
  std::string_view name;
  std::string_view description;
  int steps;                ///< of a threadblock
  int tbs;                  ///< of a GPU
  int dependency_tb;        ///< id of a threadblock that others wait for: kept in 8 bits with a sign
  int channels;             ///< per GPU
  int connections;          ///< that leave a GPU on one channel, and that enter it
  int count;                ///< chunks of a step
  int offset;               ///< kept in 16 bits with a sign
  int xml_nodes;            ///< in the view of one GPU: algo, every gpu, its own tbs and steps
  int gpus;                 ///< children of an XML node
  std::size_t name_length;  ///< characters of the program's name
  std::vector<std::string_view> colls;  ///< known collectives, as it spells them
};

/// microsoft/msccl and Azure/msccl-executor-nccl.
const std::vector<Executor>& executors();

/// Throws Error(usage) with the known names.
const Executor& find_executor(std::string_view name);

/// How `executor` spells `coll`; nothing where it does not know it.
std::optional<std::string_view> spelling(const Executor& executor, Collective coll);

}  // namespace rondo::msccl
