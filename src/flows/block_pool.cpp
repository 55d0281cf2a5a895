#include "block_pool.hpp"

#include <algorithm>
#include <numeric>

#include "rondo/parallel/map_parts.hpp"

namespace rondo {
namespace {

std::vector<ArcLoad> sparse(const std::vector<double>& amount) {
  std::vector<ArcLoad> loads;
  for (std::size_t a = 0; a < amount.size(); ++a) {
    if (amount[a] > 0) loads.push_back({static_cast<int>(a), amount[a]});
  }
  return loads;
}

}  // namespace

BlockFlows::BlockFlows(const ConcurrentFlow& flow)
    : flow_(flow),
      rows_of_(flow),
      amount_(flow.blocks.size(), std::vector<double>(flow.graph.arcs.size(), 0.0)),
      row_loads_(flow.rows.size(), 0.0) {}

void BlockFlows::add(const std::vector<PricedBlock>& columns, double share) {
  for (double& load : row_loads_) load *= 1 - share;
  for (const PricedBlock& column : columns) {
    std::vector<double>& amount = amount_[static_cast<std::size_t>(column.block)];
    for (double& value : amount) value *= 1 - share;
    for (const ArcLoad& load : column.loads)
      amount[static_cast<std::size_t>(load.arc)] += share * load.amount;
    for (const RowLoad& load : column.rows)
      row_loads_[static_cast<std::size_t>(load.row)] += share * load.theta;
  }
}

std::vector<PricedBlock> BlockFlows::columns() const {
  std::vector<PricedBlock> columns(amount_.size());
  for (std::size_t b = 0; b < amount_.size(); ++b) {
    columns[b].block = static_cast<int>(b);
    columns[b].loads = sparse(amount_[b]);
    columns[b].rows = rows_of_.of(columns[b].loads);
  }
  return columns;
}

BlockPool::BlockPool(const ConcurrentFlow& flow, const Communicator& communicator)
    : flow_(flow), communicator_(communicator), pricing_(flow), row_loads_(flow) {}

std::vector<PricedBlock> BlockPool::price(const std::vector<double>& row_price) {
  pricing_.set_lengths(arc_lengths(flow_, row_price));
  // A part is all blocks of a rank: parts of equal work go one to each.
  const auto ranks = static_cast<std::size_t>(communicator_.size());
  const auto outcomes = map_parts(communicator_, std::vector<double>(ranks, 1.0), [&](std::size_t part) {
    MessageWriter message;
    for (std::size_t b = part; b < flow_.blocks.size(); b += ranks) {
      const FlowColumn column = pricing_.price(b);
      message.put(column.cost);
      message.put_all(column.loads);
    }
    return message.take();
  });
  std::vector<PricedBlock> priced(flow_.blocks.size());
  for (std::size_t part = 0; part < ranks; ++part) {
    if (outcomes[part].error) throw *outcomes[part].error;
    MessageReader message(outcomes[part].value);
    for (std::size_t b = part; b < priced.size(); b += ranks) {
      priced[b].block = static_cast<int>(b);
      priced[b].cost = message.get<double>();
      priced[b].loads = message.get_all<std::vector<ArcLoad>>();
      priced[b].rows = row_loads_.of(priced[b].loads);
    }
  }
  return priced;
}

void BlockPool::add(const std::vector<PricedBlock>& priced) {
  for (const PricedBlock& block : priced) {
    if (!block.loads.empty()) columns_.push_back({block.block, block.loads});
  }
}

std::vector<MasterColumn> BlockPool::for_master(std::size_t first, double unit) const {
  std::vector<MasterColumn> columns;
  for (std::size_t p = first; p < columns_.size(); ++p) {
    MasterColumn& column = columns.emplace_back();
    column.block = columns_[p].block;
    for (const RowLoad& load : row_loads_.of(columns_[p].loads)) {
      column.rows.push_back(load.row);
      column.loads.push_back(load.theta / unit);
    }
  }
  return columns;
}

void BlockPool::take_weights(std::vector<double> weight) {
  for (std::size_t p = 0; p < columns_.size(); ++p) {
    columns_[p].weight = weight[p];
    columns_[p].unused = weight[p] > 0 ? 0 : columns_[p].unused + 1;
  }
}

std::vector<char> BlockPool::prune(std::size_t most) {
  if (columns_.size() <= 2 * most) return {};
  std::vector<std::size_t> order(columns_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return columns_[a].unused < columns_[b].unused; });
  std::vector<char> flags(columns_.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) flags[order[i]] = i < most || columns_[order[i]].unused == 0;
  std::size_t kept = 0;
  for (std::size_t p = 0; p < columns_.size(); ++p) {
    if (flags[p] != 0 && kept++ != p) columns_[kept - 1] = std::move(columns_[p]);
  }
  columns_.resize(kept);
  return flags;
}

std::vector<std::vector<ArcLoad>> BlockPool::flow() const {
  std::vector<std::vector<double>> dense(flow_.blocks.size());
  for (const Column& column : columns_) {
    if (column.weight <= 0) continue;
    std::vector<double>& loads = dense[static_cast<std::size_t>(column.block)];
    loads.resize(flow_.graph.arcs.size(), 0.0);
    for (const ArcLoad& load : column.loads)
      loads[static_cast<std::size_t>(load.arc)] += column.weight * load.amount;
  }
  std::vector<std::vector<ArcLoad>> flow;
  for (const std::vector<double>& amount : dense) flow.push_back(sparse(amount));
  return flow;
}

}  // namespace rondo
