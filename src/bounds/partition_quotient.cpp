#include "partition_quotient.hpp"

#include <limits>
#include <map>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// How often all nodes are gone through; each time costs as much as reading the arcs.
constexpr int kMostPasses = 20;

class Placement {
 public:
  Placement(const PartitionProblem& problem, std::vector<int> part)
      : problem_(problem), part_(std::move(part)), in_(part_.size()), out_(part_.size()) {
    for (std::size_t a = 0; a < problem.arcs.size(); ++a) {
      in_[index(problem.arcs[a].dst)].push_back(a);
      out_[index(problem.arcs[a].src)].push_back(a);
    }
    number_sets();
    for (std::size_t n = 0; n < part_.size(); ++n) {
      if (!problem.is_member[n]) others_.push_back(n);
    }
  }

  Quotient run() {
    for (int pass = 0; pass < kMostPasses; ++pass) {
      bool moved = false;
      for (const std::size_t n : others_) moved |= move(n);
      if (!moved) break;
    }
    for (const std::size_t n : others_) {  // joined to no set by a link
      if (part_[n] < 0 && !problem_.may_be_outside[n]) part_[n] = 0;
    }
    Quotient quotient{std::move(part_), std::numeric_limits<double>::infinity()};
    if (sets_ < 2) return quotient;
    double sum = 0;
    for (std::size_t a = 0; a < problem_.arcs.size(); ++a) {
      const int to = quotient.part[index(problem_.arcs[a].dst)];
      if (to >= 0 && to != quotient.part[index(problem_.arcs[a].src)]) sum += problem_.GBps[a];
    }
    quotient.GBps = sum / (sets_ - 1);
    return quotient;
  }

 private:
  void number_sets() {
    std::map<int, int> number;
    for (std::size_t n = 0; n < part_.size(); ++n) {
      if (problem_.is_member[n]) number.try_emplace(part_[n], static_cast<int>(number.size()));
    }
    for (int& part : part_) {
      const auto found = number.find(part);
      part = found == number.end() ? -1 : found->second;
    }
    sets_ = static_cast<int>(number.size());
  }

  /// To the set, or outside, where the least bandwidth is counted; stays where that is no worse.
  bool move(std::size_t n) {
    std::map<int, double> inwards;   // by the set it comes from
    std::map<int, double> outwards;  // by the set it goes to
    double all_in = 0;
    double all_out = 0;
    for (const std::size_t a : in_[n]) {
      inwards[part_[index(problem_.arcs[a].src)]] += problem_.GBps[a];
      all_in += problem_.GBps[a];
    }
    for (const std::size_t a : out_[n]) {
      const int to = part_[index(problem_.arcs[a].dst)];
      if (to < 0) continue;
      outwards[to] += problem_.GBps[a];
      all_out += problem_.GBps[a];
    }
    const auto share = [](const std::map<int, double>& of, int part) {
      const auto found = of.find(part);
      return found == of.end() ? 0.0 : found->second;
    };
    const auto counted = [&](int part) {
      return part < 0 ? all_out : all_in - share(inwards, part) + all_out - share(outwards, part);
    };
    int best = part_[n];
    double least = counted(best);
    if (best < 0 && !problem_.may_be_outside[n]) least = std::numeric_limits<double>::infinity();
    const auto consider = [&](int part) {
      if (const double sum = counted(part); sum < least * (1 - 1e-12)) {
        least = sum;
        best = part;
      }
    };
    if (problem_.may_be_outside[n]) consider(-1);
    for (const auto* sets : {&inwards, &outwards}) {
      for (const auto& [part, GBps] : *sets) {
        if (part >= 0) consider(part);
      }
    }
    return std::exchange(part_[n], best) != best;
  }

  const PartitionProblem& problem_;
  std::vector<int> part_;
  int sets_ = 0;
  std::vector<std::vector<std::size_t>> in_;   ///< arcs
  std::vector<std::vector<std::size_t>> out_;  ///< arcs
  std::vector<std::size_t> others_;
};

}  // namespace

PartitionProblem::PartitionProblem(const Topology& topology, const std::vector<char>& members, bool enter)
    : num_nodes(static_cast<int>(topology.num_nodes())), is_member(members) {
  std::map<std::pair<int, int>, double> joined;
  for (const Link& link : topology.links()) {
    const NodeId from = enter ? link.src : link.dst;
    const NodeId to = enter ? link.dst : link.src;
    joined[{from.value, to.value}] += link.bandwidth_GBps;
  }
  for (const auto& [ends, bandwidth] : joined) {
    arcs.push_back({ends.first, ends.second});
    GBps.push_back(bandwidth);
  }
  for (const Node& node : topology.nodes())
    may_be_outside.push_back(node.kind == NodeKind::switch_ && !(enter ? node.reduce : node.multicast));
}

Quotient completed(const PartitionProblem& problem, std::vector<int> part) {
  return Placement(problem, std::move(part)).run();
}

}  // namespace rondo
