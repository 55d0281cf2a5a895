#include "tree_scheduler.hpp"

#include <map>
#include <vector>

#include "../steps/task_scheduler.hpp"

namespace rondo {
namespace {

void add_tree(const TreePacking& packing, const PackedTree& tree, ChunkId chunk, TaskGraph& graph) {
  std::map<GpuId, int> task_into;
  for (const int a : tree.arcs) {
    const TreeArc& arc = packing.arcs[static_cast<std::size_t>(a)];
    const std::vector<int> causes =
        arc.src == tree.root ? std::vector<int>{} : std::vector<int>{task_into.at(arc.src)};
    task_into[arc.dst] = graph.add(a, chunk, SendOp::copy, causes);
  }
}

}  // namespace

Schedule schedule_trees(const Topology& topology, const TreePacking& packing, const Demand& demand,
                        std::uint64_t seed, int concurrency) {
  TaskGraph graph;
  for (const TreeArc& arc : packing.arcs) graph.hops.push_back(make_hop(topology, arc.path));
  std::vector<std::size_t> next_chunk(topology.num_gpus());  // per origin
  for (std::size_t i = 0; i < demand.contributions().size(); ++i) {
    next_chunk[demand.contributions()[i].origin.index()] =
        i * static_cast<std::size_t>(demand.chunks_per_contribution());
  }
  for (const PackedTree& tree : packing.trees) {
    for (std::int64_t i = 0; i < tree.multiplicity; ++i)
      add_tree(packing, tree, ChunkId{next_chunk[tree.root.index()]++}, graph);
  }
  std::vector<double> rank = times_to_go_us(graph, demand);
  for (double& to_go_us : rank) to_go_us = -to_go_us;
  return schedule_tasks(topology, demand, graph, rank, seed, concurrency);
}

}  // namespace rondo
