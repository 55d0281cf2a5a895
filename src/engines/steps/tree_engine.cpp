#include <algorithm>

#include "known_algorithm.hpp"
#include "rondo/core/error.hpp"

/// Two binary trees, each for half of the data, in which no GPU but one passes data on in both (Sanders,
/// Speck, Träff, 2009); numbered as NCCL numbers them.
namespace rondo {
namespace {

/// Of the tree over ranks 0 .. count - 1 whose root is 0; -1: rank 0 has no parent.
int parent_of(int rank, int count) {
  if (rank == 0) return -1;
  const int bit = rank & -rank;
  const int up = (rank ^ bit) | (bit << 1);
  return up < count ? up : rank ^ bit;
}

/// Tree 1 is tree 0 backwards, or for odd counts moved by one, so that leaves of one are inner nodes of the
/// other.
int member_at(int tree, int rank, int count) {
  if (tree == 0) return rank;
  return count % 2 == 0 ? count - 1 - rank : (rank + 1) % count;
}

/// Down the tree over `count` members, from its root on.
StepMessages down(int tree, int count) {
  const auto depth_of = [&](int rank) {
    int steps = 0;
    for (int r = rank; parent_of(r, count) >= 0; r = parent_of(r, count)) ++steps;
    return steps;
  };
  StepMessages messages;
  for (int rank = 1; rank < count; ++rank)
    messages.push_back(
        {member_at(tree, parent_of(rank, count), count), member_at(tree, rank, count), depth_of(rank) - 1});
  std::ranges::stable_sort(messages, {}, &StepMessage::step);
  return messages;
}

/// The trees are over the other members, and the root feeds both.
StepMessages broadcast(int tree, int root, int count) {
  const auto other = [&](int m) { return m < root ? m : m + 1; };
  StepMessages messages{{root, other(member_at(tree, 0, count - 1)), 0}};
  for (const StepMessage& m : down(tree, count - 1))
    messages.push_back({other(m.from), other(m.to), m.step + 1});
  return messages;
}

KnownAlgorithm two_trees(const Members& members) {
  const int count = members.count();
  KnownAlgorithm algorithm{.shares = {0.5, 0.5}};
  algorithm.root_of_sum = [count](int tree, int) { return member_at(tree, 0, count); };
  if (members.has_one_root) {
    algorithm.spread = [count](int tree, int root) { return broadcast(tree, root, count); };
  } else if (members.combine) {
    algorithm.spread = [count](int tree, int) { return down(tree, count); };
  } else {
    throw Error(
        ExitCode::unavailable,
        "engine tree does Broadcast, Reduce and AllReduce, along trees with one root; use --engine auto");
  }
  return algorithm;
}

}  // namespace

EngineInfo tree_engine() {
  return known_engine("tree", "two binary trees, each for half of the data; Broadcast, Reduce, AllReduce",
                      two_trees, [](int) { return 2; });
}

}  // namespace rondo
