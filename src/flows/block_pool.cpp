#include "block_pool.hpp"

#include <algorithm>
#include <numeric>

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

std::vector<PartOutcome> BlockPool::price_each(const std::vector<double>& row_price,
                                               const std::function<Bytes(const FlowColumn&)>& packed) {
  pricing_.set_lengths(arc_lengths(flow_, row_price));
  // Parts of equal work: block b is of rank b mod ranks.
  std::vector<PartOutcome> outcomes = map_parts(communicator_, std::vector<double>(flow_.blocks.size(), 1.0),
                                                [&](std::size_t b) { return packed(pricing_.price(b)); });
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
  }
  return outcomes;
}

std::vector<PricedBlock> BlockPool::price(const std::vector<double>& row_price) {
  const auto outcomes = price_each(row_price, [](const FlowColumn& column) {
    MessageWriter message;
    message.put(column.cost);
    message.put_all(column.loads);
    return message.take();
  });
  std::vector<PricedBlock> priced(outcomes.size());
  for (std::size_t b = 0; b < priced.size(); ++b) {
    MessageReader message(outcomes[b].value);
    priced[b].block = static_cast<int>(b);
    priced[b].cost = message.get<double>();
    priced[b].loads = message.get_all<std::vector<ArcLoad>>();
    priced[b].rows = row_loads_.of(priced[b].loads);
  }
  return priced;
}

double BlockPool::least_cost(const std::vector<double>& row_price) {
  double sum = 0;
  for (const PartOutcome& outcome :
       price_each(row_price, [](const FlowColumn& column) { return to_message(column.cost); }))
    sum += from_message<double>(outcome.value);
  return sum;
}

std::vector<PricedBlock> BlockPool::gather(const std::vector<std::vector<ArcLoad>>& own) const {
  MessageWriter message;
  for (const std::vector<ArcLoad>& loads : own) message.put_all(loads);
  const std::vector<Bytes> received = communicator_.all_gather(message.take());
  std::vector<MessageReader> readers(received.begin(), received.end());
  std::vector<PricedBlock> all(flow_.blocks.size());
  for (std::size_t b = 0; b < all.size(); ++b) {
    all[b].block = static_cast<int>(b);
    all[b].loads = readers[b % readers.size()].get_all<std::vector<ArcLoad>>();
    all[b].rows = row_loads_.of(all[b].loads);
  }
  return all;
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
  return sums([](std::size_t) { return true; });
}

std::vector<std::vector<ArcLoad>> BlockPool::own_flow() const {
  const std::vector<std::vector<ArcLoad>> all = sums([&](std::size_t block) { return is_own(block); });
  std::vector<std::vector<ArcLoad>> own;
  for (std::size_t b = 0; b < all.size(); ++b) {
    if (is_own(b)) own.push_back(all[b]);
  }
  return own;
}

std::vector<std::vector<ArcLoad>> BlockPool::sums(const std::function<bool(std::size_t block)>& wants) const {
  std::vector<std::vector<double>> dense(flow_.blocks.size());
  for (const Column& column : columns_) {
    const auto block = static_cast<std::size_t>(column.block);
    if (column.weight <= 0 || !wants(block)) continue;
    std::vector<double>& loads = dense[block];
    loads.resize(flow_.graph.arcs.size(), 0.0);
    for (const ArcLoad& load : column.loads)
      loads[static_cast<std::size_t>(load.arc)] += column.weight * load.amount;
  }
  std::vector<std::vector<ArcLoad>> flow;
  for (const std::vector<double>& amount : dense) flow.push_back(sparse(amount));
  return flow;
}

}  // namespace rondo
