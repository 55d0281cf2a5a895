#include "sum_forest.hpp"

#include <algorithm>
#include <utility>

#include "rondo/core/time_slack.hpp"
#include "selection.hpp"

namespace rondo {
namespace {

/// Of so many draws one is another GPU, and one the same time.
constexpr std::size_t kDrawsOfGpu = 8;
constexpr std::size_t kDrawsOfSameTime = 3;

}  // namespace

SumForest::SumForest(const SumTrees& trees, const SumSpace& space)
    : space_(space),
      sums_(space.spread, Forest::Reading::backwards),
      spread_(space.spread, Forest::Reading::forwards) {
  sums_.share_links_with(spread_, space.horizon_us);
  trees_.of_chunk.resize(trees.of_chunk.size());
  for (std::size_t c = 0; c < trees.of_chunk.size(); ++c) put_back(c, trees.of_chunk[c]);
}

double SumForest::late_us(std::size_t chunk, double target_us) const {
  const Tree& tree = trees_.of_chunk[chunk];
  const double late_us = tree.ends_us - target_us;
  return tree.begins_us < -time_slack_us(0) ? std::max(0.0, late_us) - tree.begins_us : late_us;
}

std::vector<double> SumForest::load_us() const {
  std::vector<double> load_us = sums_.load_us();
  for (std::size_t l = 0; l < load_us.size(); ++l) load_us[l] += spread_.load_us()[l];
  return load_us;
}

SumTrees::Tree SumForest::take_out(std::size_t chunk) {
  Tree tree = trees_.of_chunk[chunk];
  tree.sums = sums_.take_out(chunk);
  tree.spread = spread_.take_out(chunk);
  return tree;
}

void SumForest::put_back(std::size_t chunk, Tree tree) {
  sums_.put_back(chunk, std::exchange(tree.sums, {}));
  spread_.put_back(chunk, std::exchange(tree.spread, {}));
  trees_.of_chunk[chunk] = std::move(tree);
}

void SumForest::set_prices(const std::vector<double>& price) {
  sums_.set_prices(price);
  spread_.set_prices(price);
}

void SumForest::vary(std::size_t chunk, const Tree& before, double target_us, Random& random) {
  Forest::Root& root = trees_.of_chunk[chunk].root;
  root = before.root;
  if (one_in(random, kDrawsOfGpu)) root.gpu = GpuId{random.below(space_.spread.into.size())};
  if (one_in(random, kDrawsOfSameTime)) return;
  const double earliest_us = root.ready_us - before.begins_us;
  const double latest_us = root.ready_us + target_us - before.ends_us;
  root.ready_us = std::max(0.0, earliest_us + random.unit() * (latest_us - earliest_us));
}

void SumForest::grow(std::size_t chunk, double dearness) {
  Tree& tree = trees_.of_chunk[chunk];
  sums_.grow(chunk, {tree.root.gpu, space_.horizon_us - tree.root.ready_us}, dearness);
  spread_.grow(chunk, tree.root, dearness);
  tree.begins_us = space_.horizon_us - sums_.ends_us(chunk);
  tree.ends_us = spread_.ends_us(chunk);
}

SumTrees SumForest::plan() const {
  SumTrees trees = trees_;
  for (std::size_t c = 0; c < trees.of_chunk.size(); ++c) {
    trees.of_chunk[c].sums = sums_.tree(c);
    trees.of_chunk[c].spread = spread_.tree(c);
  }
  return trees;
}

}  // namespace rondo
