#pragma once

#include <vector>

#include "rondo/core/topology.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {

/// One side of partitions of the nodes: what enters sets. For what leaves them every link is turned round.
struct PartitionProblem {
  int num_nodes = 0;
  std::vector<Arc> arcs;             ///< without parallel ones
  std::vector<double> GBps;          ///< per arc
  std::vector<char> is_member;       ///< per node: a GPU that gives to the sums and wants them
  std::vector<char> may_be_outside;  ///< per node: a switch that leaves one send one

  PartitionProblem(const Topology& topology, const std::vector<char>& is_member, bool enter);
};

struct Quotient {
  std::vector<int> part;  ///< per node: its set; -1: outside
  double GBps = 0;        ///< bandwidth into sets / (sets - 1)
};

/// Numbers the sets anew, those without a member being given up; moves other nodes, one by one, to where they
/// cost least, into a set wherever they may not be outside; and derives the quotient: infinity for one set.
Quotient completed(const PartitionProblem& problem, std::vector<int> part);

}  // namespace rondo
