#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "rondo/decomp/columns.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

/// A block's cheapest column at some prices.
struct PricedBlock {
  int block = 0;
  double cost = 0;
  std::vector<ArcLoad> loads = {};  ///< empty: not to be added
  std::vector<RowLoad> rows = {};
};

/// A flow of every block, and the sum of their row loads.
class BlockFlows {
 public:
  explicit BlockFlows(const ConcurrentFlow& flow);
  /// (1 - share) of what is there, plus `share` of the columns, one a block.
  void add(const std::vector<PricedBlock>& columns, double share);
  const std::vector<double>& row_loads() const { return row_loads_; }
  std::vector<PricedBlock> columns() const;

 private:
  const ConcurrentFlow& flow_;
  RowLoads rows_of_;
  std::vector<std::vector<double>> amount_;  ///< [block][arc]
  std::vector<double> row_loads_;
};

/// Prices the blocks, each on its rank, and keeps the columns of all of them on every rank, in the order of
/// the master.
class BlockPool {
 public:
  BlockPool(const ConcurrentFlow& flow, const Communicator& communicator);

  /// Collective: all blocks in their order, on every rank.
  std::vector<PricedBlock> price(const std::vector<double>& row_price);
  /// Collective: what the cheapest columns of all blocks cost together.
  double least_cost(const std::vector<double>& row_price);
  /// Collective. `own`: of the blocks of this rank, in their order; block b is of rank b mod ranks.
  std::vector<PricedBlock> gather(const std::vector<std::vector<ArcLoad>>& own) const;

  /// Those with loads.
  void add(const std::vector<PricedBlock>& priced);
  /// Those from the `first` on, as a master takes them that counts theta in `unit`.
  std::vector<MasterColumn> for_master(std::size_t first, double unit) const;
  std::size_t size() const { return columns_.size(); }
  /// One weight a column.
  void take_weights(std::vector<double> weight);
  /// Where there are more than 2 x `most` columns, keeps the `most` that had a weight last, and all that have
  /// one; returns a flag a column, 1 for those kept, or nothing where all are.
  std::vector<char> prune(std::size_t most);
  /// The weighted sum of each block's columns.
  std::vector<std::vector<ArcLoad>> flow() const;
  /// Of the blocks of this rank alone.
  std::vector<std::vector<ArcLoad>> own_flow() const;

 private:
  /// Collective. A part a block: its cheapest column, packed on its rank.
  std::vector<PartOutcome> price_each(const std::vector<double>& row_price,
                                      const std::function<Bytes(const FlowColumn&)>& packed);
  /// Of the blocks that are wanted; the others have none.
  std::vector<std::vector<ArcLoad>> sums(const std::function<bool(std::size_t block)>& wants) const;
  bool is_own(std::size_t block) const {
    return block % static_cast<std::size_t>(communicator_.size()) ==
           static_cast<std::size_t>(communicator_.rank());
  }

  struct Column {
    int block = 0;
    std::vector<ArcLoad> loads;
    double weight = 0;
    int unused = 0;  ///< masters since it had a weight
    friend auto members_of(SameAs<Column> auto& c) { return std::tie(c.block, c.loads, c.weight, c.unused); }
  };
  friend auto members_of(SameAs<BlockPool> auto& pool) { return std::tie(pool.columns_); }

  const ConcurrentFlow& flow_;
  const Communicator& communicator_;
  BlockPricing pricing_;
  RowLoads row_loads_;
  std::vector<Column> columns_;
};

auto members_of(SameAs<MasterSolution> auto& m) {
  return std::tie(m.status, m.iterations, m.theta, m.weight, m.row_price, m.block_price);
}

}  // namespace rondo
