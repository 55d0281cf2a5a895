#include "dilworth.hpp"

#include <cmath>
#include <queue>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// Members are taken one after the other. Of the sets of members up to this one that hold it, and any other
/// nodes besides, the one with the least bandwidth in - 1 - the x of the rest gives its x, and makes its
/// members a block: the blocks at the end are the partition. (Bandwidths are multiples of the quotient.)
class Truncation {
 public:
  Truncation(const PartitionProblem& problem, double GBps)
      : problem_(problem), block_of_(index(problem.num_nodes), kAhead) {
    for (const double bandwidth : problem.GBps) capacity_.push_back(bandwidth / GBps);
    for (std::size_t n = 0; n < block_of_.size(); ++n) {
      if (!problem.is_member[n]) block_of_[n] = kFree;
    }
    part_.assign(block_of_.size(), -1);
  }

  bool run(const Deadline& deadline) {
    for (const int member : members_in_order()) {
      if (deadline.is_over()) return false;
      add(member);
    }
    return true;
  }

  std::vector<int> partition() {
    for (std::size_t n = 0; n < part_.size(); ++n) {
      if (block_of_[n] >= 0) part_[n] = block_of_[n];
    }
    return std::move(part_);
  }

 private:
  static constexpr int kAhead = -1;  ///< a member whose turn has not come
  static constexpr int kFree = -2;   ///< no member

  /// Neighbours after each other, so that blocks form early and networks stay small.
  std::vector<int> members_in_order() const {
    std::vector<std::vector<int>> beside(block_of_.size());
    for (const Arc& arc : problem_.arcs) {
      beside[index(arc.src)].push_back(arc.dst);
      beside[index(arc.dst)].push_back(arc.src);
    }
    std::vector<char> seen(block_of_.size(), 0);
    std::vector<int> order;
    for (int start = 0; start < problem_.num_nodes; ++start) {
      if (seen[index(start)]) continue;
      seen[index(start)] = 1;
      std::queue<int> next;
      for (next.push(start); !next.empty(); next.pop()) {
        const int n = next.front();
        if (problem_.is_member[index(n)]) order.push_back(n);
        for (const int other : beside[index(n)]) {
          if (!std::exchange(seen[index(other)], 1)) next.push(other);
        }
      }
    }
    return order;
  }

  void add(int member) {
    constexpr int kSource = 0;
    constexpr int kTarget = 1;
    const int block = static_cast<int>(x_.size());
    block_of_[index(member)] = block;
    x_.push_back(0);
    // The network: a node a block and a free node; members that are ahead are the source.
    std::vector<int> node_of_block(x_.size(), -1);
    std::vector<int> node_of(block_of_.size(), kSource);
    int num_nodes = 2;
    node_of_block[index(block)] = kTarget;
    for (std::size_t n = 0; n < block_of_.size(); ++n) {
      if (block_of_[n] == kFree) {
        node_of[n] = num_nodes++;
      } else if (block_of_[n] != kAhead) {
        int& node = node_of_block[index(block_of_[n])];
        if (node < 0) node = num_nodes++;
        node_of[n] = node;
      }
    }
    Digraph graph{num_nodes, {}};
    std::vector<double> capacity;
    std::vector<double> from_source(index(num_nodes), 0.0);
    std::vector<double> to_target(index(num_nodes), 0.0);
    for (std::size_t a = 0; a < problem_.arcs.size(); ++a) {
      const int from = node_of[index(problem_.arcs[a].src)];
      const int to = node_of[index(problem_.arcs[a].dst)];
      if (from == to || to == kSource || from == kTarget) continue;
      if (from == kSource) {
        from_source[index(to)] += capacity_[a];
      } else if (to == kTarget) {
        to_target[index(from)] += capacity_[a];
      } else {
        graph.arcs.push_back({from, to});
        capacity.push_back(capacity_[a]);
      }
    }
    for (std::size_t b = 0; b + 1 < x_.size(); ++b) {
      if (node_of_block[b] < 0) continue;
      (x_[b] > 0 ? to_target : from_source)[index(node_of_block[b])] += std::abs(x_[b]);
    }
    for (int n = 2; n < num_nodes; ++n) {
      if (from_source[index(n)] > 0) {
        graph.arcs.push_back({kSource, n});
        capacity.push_back(from_source[index(n)]);
      }
      if (to_target[index(n)] > 0) {
        graph.arcs.push_back({n, kTarget});
        capacity.push_back(to_target[index(n)]);
      }
    }
    const MinCut cut = min_cut(graph, capacity, kSource, kTarget);
    double x = from_source[kTarget] + cut.value - 1;
    for (std::size_t b = 0; b + 1 < x_.size(); ++b) {
      if (node_of_block[b] >= 0 && x_[b] > 0) x -= x_[b];
    }
    absorb(block, x, cut.source_side, node_of_block, node_of);
  }

  /// Blocks in the set become one with `block`; free nodes in it are placed there for the time being.
  void absorb(int block, double x, const std::vector<char>& source_side,
              const std::vector<int>& node_of_block, const std::vector<int>& node_of) {
    x_[index(block)] = x;
    for (std::size_t b = 0; b + 1 < x_.size(); ++b) {
      if (node_of_block[b] < 0 || source_side[index(node_of_block[b])]) continue;
      x_[index(block)] += std::exchange(x_[b], 0.0);
    }
    for (std::size_t n = 0; n < block_of_.size(); ++n) {
      if (block_of_[n] == kAhead || source_side[index(node_of[n])]) continue;
      (block_of_[n] == kFree ? part_ : block_of_)[n] = block;
    }
    // What was placed in a block that is gone goes along.
    for (std::size_t n = 0; n < part_.size(); ++n) {
      if (part_[n] < 0 || part_[n] == block) continue;
      const int node = node_of_block[index(part_[n])];
      if (node >= 0 && !source_side[index(node)]) part_[n] = block;
    }
  }

  const PartitionProblem& problem_;
  std::vector<double> capacity_;
  std::vector<int> block_of_;  ///< per node: its block, kAhead or kFree
  std::vector<int> part_;      ///< per free node: its block; -1: outside
  std::vector<double> x_;      ///< per block; of those that are gone 0
};

}  // namespace

std::optional<std::vector<int>> dilworth_truncation(const PartitionProblem& problem, double GBps,
                                                    const Deadline& deadline) {
  Truncation truncation(problem, GBps);
  if (!truncation.run(deadline)) return std::nullopt;
  return truncation.partition();
}

}  // namespace rondo
