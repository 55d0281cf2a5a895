#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "forest.hpp"
#include "rondo/core/random.hpp"
#include "sum_trees.hpp"

namespace rondo {

/// A plan of sums, of which the two trees of a chunk can be taken out and grown anew in the time that all
/// other trees leave. For hops whose bandwidth never changes. The functions are those of Forest.
class SumForest {
 public:
  using Tree = SumTrees::Tree;

  /// `space` must outlive it.
  SumForest(const SumTrees& trees, const SumSpace& space);

  std::size_t num_trees() const { return trees_.of_chunk.size(); }
  double ends_us(std::size_t chunk) const { return trees_.of_chunk[chunk].ends_us; }
  /// What it begins too early counts as well.
  double late_us(std::size_t chunk, double target_us) const;
  double latest_us() const { return trees_.finish_us(); }
  std::vector<double> load_us() const;

  Tree take_out(std::size_t chunk);
  void put_back(std::size_t chunk, Tree tree);
  void set_prices(const std::vector<double>& price);
  /// Draws when the parts of a chunk meet, whose trees were `before`: some time that would leave neither tree
  /// late, or one of them less, if both took as long as before; or at the same time. Sometimes at another
  /// GPU.
  void vary(std::size_t chunk, const Tree& before, double target_us, Random& random);
  /// Both trees, from where and when the parts meet.
  void grow(std::size_t chunk, double dearness);
  std::uint64_t looks() const { return sums_.looks() + spread_.looks(); }
  double price_of(std::size_t chunk) const { return sums_.price_of(chunk) + spread_.price_of(chunk); }

  SumTrees plan() const;

 private:
  const SumSpace& space_;
  Forest sums_;  ///< read backwards
  Forest spread_;
  SumTrees trees_;  ///< without their branches, which the forests have
};

}  // namespace rondo
