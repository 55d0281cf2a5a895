#include "inside_problem.hpp"

namespace rondo {

Instance instance_of(const Instance& whole, const Piece& piece, Demand demand) {
  return {std::make_shared<const Topology>(piece.data), std::move(demand), whole.grid, nullptr,
          whole.interval_starts};
}

InsideProblem inside_problem(const Instance& whole, const std::vector<int>& cluster_of_node, int cluster,
                             const Inside& inside, const std::map<LinkId, int>& delay) {
  const Topology& fabric = *whole.topology;
  Piece piece;
  for (std::size_t n = 0; n < cluster_of_node.size(); ++n) {
    if (cluster_of_node[n] == cluster) piece.node[NodeId{n}] = piece.add(fabric.nodes()[n]);
  }
  for (std::size_t l = 0; l < fabric.num_links(); ++l) {
    const Link& link = fabric.links()[l];
    if (cluster_of_node[link.src.index()] == cluster && cluster_of_node[link.dst.index()] == cluster)
      piece.add(LinkId{l}, link);
  }
  const NodeId outside = piece.add(Node{});
  std::vector<NodeId> entrance;  // per goal
  for (std::size_t i = 0; i < inside.in.size(); ++i) entrance.push_back(piece.add(Node{}));

  InsideProblem problem{std::move(piece), whole};
  const auto topology = std::make_shared<const Topology>(problem.piece.data);
  const auto node = [&](NodeId of_fabric) { return problem.piece.node.at(of_fabric); };
  const auto gpu = [&](NodeId of_piece) { return topology->gpu_of(of_piece); };
  std::map<std::pair<NodeId, NodeId>, double> bytes_of;  // within the piece
  std::map<NodeId, double> ready_us;
  std::vector<FixedFlow> fixed;
  const auto fix = [&](NodeId origin, NodeId from, NodeId to, const Crossing& crossing, double bytes) {
    fixed.push_back({gpu(origin), from, to, crossing.from, crossing.to, delay.at(crossing.link), bytes});
  };
  for (const auto& [n, ready] : inside.ready_us) {
    ready_us[node(n)] = ready;
    problem.gpu[gpu(node(n))] = fabric.gpu_of(n);
  }
  for (const auto& [ends, bytes] : inside.local) bytes_of[{node(ends.first), node(ends.second)}] += bytes;
  for (const auto& [key, bytes] : inside.out) {
    const auto& [src, crossing] = key;
    bytes_of[{node(src), outside}] += bytes;
    fix(node(src), node(fabric.link(crossing.link).src), outside, crossing, bytes);
  }
  auto next = entrance.begin();
  for (const auto& [goal, crossings] : inside.in) {
    const NodeId origin = *next++;
    problem.goal.emplace(gpu(origin), goal);
    double all = 0;
    for (const auto& [crossing, shares] : crossings) {
      const double bytes = sum_of(shares);
      fix(origin, origin, node(fabric.link(crossing.link).dst), crossing, bytes);
      all += bytes;
    }
    const Crossing* exit = std::get_if<Crossing>(&goal);
    if (exit) fix(origin, node(fabric.link(exit->link).src), outside, *exit, all);
    bytes_of[{origin, exit ? outside : node(std::get<NodeId>(goal))}] += all;
  }

  double all = 0;
  std::vector<Contribution> contributions;
  for (const auto& [ends, bytes] : bytes_of) {
    contributions.push_back({gpu(ends.first), bytes, {gpu(ends.second)}, ready_us[ends.first]});
    all += bytes;
  }
  problem.instance =
      instance_of(whole, problem.piece,
                  Demand(Collective::custom, all, topology->num_gpus(), std::move(contributions), 1));
  problem.instance.fixed_flows = std::move(fixed);
  return problem;
}

}  // namespace rondo
