#include "tuner_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "rondo/core/error.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo::cli {
namespace {

/// What NCCL's plugin calls a collective; nothing for those that it does not tune.
std::string tuner_name(Collective collective) {
  if (collective == Collective::reduce_scatter) return "reducescatter";
  for (const Collective same :
       {Collective::allgather, Collective::allreduce, Collective::broadcast, Collective::reduce}) {
    if (collective == same) return std::string(to_string(collective));
  }
  return "";
}

/// NCCL builds trees for AllReduce alone.
std::vector<std::string> algorithms_of(Collective collective) {
  if (collective == Collective::allreduce) return {"ring", "tree"};
  return {"ring"};
}

/// Infinity where the fabric has none.
double finish_us(const std::string& engine, const std::shared_ptr<const Topology>& topology,
                 const Demand& demand) {
  const auto alone = make_local_communicator();
  Problem problem{topology, demand};
  problem.options.engine = engine;
  try {
    return synthesize(problem, {*alone}).proven.schedule.finish_us;
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
    return std::numeric_limits<double>::infinity();
  }
}

struct TunerLine {
  std::string algorithm;
  double first_bytes = 0;
  double last_bytes = 0;
};

std::vector<TunerLine> lines_of(const std::shared_ptr<const Topology>& topology,
                                const catalogue::Table& table) {
  std::vector<TunerLine> lines;
  for (const catalogue::Cell& cell : table.cells) {
    const Demand demand = demand_of(table.series, cell.size_bytes, topology->num_gpus());
    std::string best;
    double best_us = std::numeric_limits<double>::infinity();
    for (const std::string& algorithm : algorithms_of(table.series.collective)) {
      const double us = finish_us(algorithm, topology, demand);
      if (us < best_us) {
        best_us = us;
        best = algorithm;
      }
    }
    if (best.empty()) continue;
    if (lines.empty() || lines.back().algorithm != best) lines.push_back({best, cell.size_bytes, 0});
    lines.back().last_bytes = cell.size_bytes;
  }
  return lines;
}

int num_chassis(const Topology& topology) {
  std::set<int> chassis;
  for (const Node& node : topology.nodes()) {
    if (node.kind == NodeKind::gpu) chassis.insert(node.chassis.value_or(0));
  }
  return static_cast<int>(chassis.size());
}

}  // namespace

std::string tuner_table(const std::shared_ptr<const Topology>& topology,
                        const std::vector<catalogue::Table>& tables) {
  std::string text =
      "# colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";
  bool any = false;
  for (const catalogue::Table& table : tables) {
    const std::string name = tuner_name(table.series.collective);
    if (name.empty() || !table.series.group.empty()) continue;
    const std::vector<TunerLine> lines = lines_of(topology, table);
    std::uint64_t from = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool is_last = i + 1 == lines.size();
      // Between two sizes of the catalogue: the middle, by ratio.
      const auto to =
          is_last ? std::uint64_t{1} << 40
                  : static_cast<std::uint64_t>(std::sqrt(lines[i].last_bytes * lines[i + 1].first_bytes));
      text += fmt::format("{},{},{},{},simple,-1,{},{},-1,-1\n", name, from, to, lines[i].algorithm,
                          num_chassis(*topology), topology->num_gpus());
      from = to + 1;
      any = true;
    }
  }
  if (!any) {
    throw Error(
        ExitCode::unavailable,
        "no series over all GPUs has one of NCCL's algorithms on this fabric (ring; AllReduce also tree)");
  }
  return text;
}

}  // namespace rondo::cli
