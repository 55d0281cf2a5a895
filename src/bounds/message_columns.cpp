#include "message_columns.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

/// Share of the best prices so far in those that are tried, halved where that yields nothing.
constexpr double kFirstSmoothing = 0.9;
constexpr double kLeastSmoothing = 0.1;
/// Of the prices, that of all rows alike: keeps messages that cost nothing short.
constexpr double kEvenShare = 1e-6;
/// Growth of the prices of multiplicative weights.
constexpr double kSharpnessOfPrices = 0.5;
/// Of a period: what lies in it by rounding alone.
constexpr double kShortest = 1e-9;
/// What a column has to gain, of its block's share in what the master may still lose.
constexpr double kLeastColumnGain = 1e-2;

class MessageColumns {
 public:
  MessageColumns(const MessageProblem& problem, double until_us, const MessageColumnOptions& options,
                 const MakeColumnMaster& make_master, const Deadline& deadline)
      : problem_(problem), until_us_(until_us), options_(options), deadline_(deadline) {
    const std::size_t rows = problem.rows.size();
    for (std::size_t r = 0; r < rows * options.periods; ++r)
      capacity_.push_back(problem.rows.all()[r % rows].GBps * kBytesPerUsPerGBps * period_us());
    rows_of_link_.resize(problem.topology.num_links());
    for (std::size_t r = 0; r < rows; ++r) {
      for (const LinkId l : problem.rows.all()[r].links) rows_of_link_[l.index()].push_back(r);
    }
    for (double value : capacity_) even_.push_back(1 / (value * static_cast<double>(capacity_.size())));
    // One block a source, or a destination where there are several.
    const bool is_of_all = !problem.gpu.valid();
    for (const WantedBytes& some : problem.wanted)
      block_of_[is_of_all ? some.destination : some.sources.front().gpu] = 0;
    for (auto& [gpu, block] : block_of_) block = num_blocks_++;
    master_ = make_master(static_cast<int>(capacity_.size()), num_blocks_);
  }

  MessagePrices run(const MessagePrices& start) {
    best_ = {even_, 0};
    std::vector<Priced> first = price(start.of_row.empty() ? even_ : earning_one(start.of_row));
    if (!std::isfinite(best_.payments)) return {{}, kInfinity, times_priced_};
    unit_ = std::max(best_.payments, 1e-300);
    if (!start.of_row.empty()) add(first);
    warm_up();
    for (int k = 0; k < options_.max_masters && !deadline_.is_over(); ++k) {
      if (!solve_master() || theta_ <= best_.payments * (1 + options_.gap)) break;
      if (theta_ < 1 - options_.gap) break;  // no prices prove this end
      if (!add_improving_columns()) break;
    }
    best_.times_priced = times_priced_;
    return std::move(best_);
  }

 private:
  struct Priced {
    double cost = 0;
    std::map<int, double> loads = {};  ///< per row, of its capacity
  };

  double period_us() const { return until_us_ / static_cast<double>(options_.periods); }

  /// Prices grow exponentially with the loads of the average of all messages so far, which is a good column
  /// (Garg and Koenemann 2007).
  void warm_up() {
    std::vector<Priced> average(static_cast<std::size_t>(num_blocks_));
    std::vector<double> row_price = even_;
    std::vector<Priced> priced;
    for (int k = 0; k < options_.warm_up && !deadline_.is_over(); ++k) {
      priced = price(row_price);
      std::vector<double> sums(capacity_.size(), 0);
      for (std::size_t b = 0; b < priced.size(); ++b) {
        for (auto& [row, load] : average[b].loads) load *= k / (k + 1.0);
        for (const auto& [row, load] : priced[b].loads) average[b].loads[row] += load / (k + 1.0);
        for (const auto& [row, load] : average[b].loads) sums[index(row)] += load;
      }
      const double greatest = *std::ranges::max_element(sums);
      for (std::size_t r = 0; r < sums.size(); ++r)
        row_price[r] = std::exp(kSharpnessOfPrices * (k + 1) * (sums[r] / greatest - 1)) / capacity_[r];
      row_price = earning_one(std::move(row_price));
    }
    add(priced);
    add(average);
  }

  std::vector<double> earning_one(std::vector<double> row_price) const {
    double earned = 0;
    for (std::size_t r = 0; r < row_price.size(); ++r) earned += row_price[r] * capacity_[r];
    if (!(earned > 0)) return even_;
    for (double& price : row_price) price /= earned;
    return row_price;
  }

  /// The cheapest messages of each block.
  std::vector<Priced> price(const std::vector<double>& row_price) {
    std::vector<double> floored(row_price.size());
    for (std::size_t r = 0; r < floored.size(); ++r)
      floored[r] = (1 - kEvenShare) * row_price[r] + kEvenShare * even_[r];
    MessagePrices prices{std::move(floored), 0};
    const MessagePricesCertificate certificate =
        message_certificate(problem_, prices, options_.periods, options_.parts, until_us_);
    CheapestMessages cheapest(problem_.topology, certificate);
    ++times_priced_;
    std::vector<Priced> priced(static_cast<std::size_t>(num_blocks_));
    GpuId destination;
    for (const WantedBytes& some : problem_.wanted) {
      if (some.destination != destination) cheapest.towards(destination = some.destination);
      const auto& [source, from_us] = some.sources.front();
      Priced& block = priced[index(block_of_.at(problem_.gpu.valid() ? source : some.destination))];
      block.cost += some.bytes * cheapest.least_payment(source, from_us);
      for (const PaidMessage& message : cheapest.messages(source, from_us))
        load(message, some.bytes, block.loads);
    }
    for (const Priced& block : priced) prices.payments += block.cost;
    if (prices.payments > best_.payments) best_ = std::move(prices);
    return priced;
  }

  void load(const PaidMessage& message, double bytes, std::map<int, double>& loads) const {
    const double rate = bytes / message.bytes_us();
    for (const PaidMessage::Step& step : message.steps) {
      const double from_us = message.start_us + step.latency_us;
      const double until_us = message.end_us + step.latency_us;
      auto period = static_cast<std::size_t>(from_us / period_us());
      for (; period < options_.periods; ++period) {
        const double begin_us = period_us() * static_cast<double>(period);
        if (begin_us >= until_us) break;
        const double within_us = std::min(until_us, begin_us + period_us()) - std::max(from_us, begin_us);
        if (within_us <= kShortest * period_us()) continue;
        for (const std::size_t r : rows_of_link_[step.link.index()]) {
          const std::size_t row = period * problem_.rows.size() + r;
          loads[static_cast<int>(row)] += rate * within_us / capacity_[row];
        }
      }
    }
  }

  void add(const std::vector<Priced>& priced) {
    std::vector<MasterColumn> columns;
    for (std::size_t b = 0; b < priced.size(); ++b) {
      if (priced[b].loads.empty()) continue;
      MasterColumn& column = columns.emplace_back(MasterColumn{static_cast<int>(b)});
      for (const auto& [row, load] : priced[b].loads) {
        column.rows.push_back(row);
        column.loads.push_back(load / unit_);
      }
    }
    master_->add(columns);
  }

  bool solve_master() {
    const MasterSolution solution = master_->solve(deadline_.left_of({}));
    if (solution.status != SolveStatus::optimal) return false;
    theta_ = solution.theta * unit_;
    master_price_ = solution.row_price;
    for (std::size_t r = 0; r < master_price_.size(); ++r) master_price_[r] /= capacity_[r];
    master_price_ = earning_one(std::move(master_price_));
    block_price_ = solution.block_price;
    for (double& price : block_price_) price *= unit_;
    return true;
  }

  bool add_improving_columns() {
    for (double smoothing = kFirstSmoothing;; smoothing = smoothing > kLeastSmoothing ? smoothing / 2 : 0.0) {
      std::vector<double> tried(master_price_.size());
      for (std::size_t r = 0; r < tried.size(); ++r)
        tried[r] = smoothing * best_.of_row[r] + (1 - smoothing) * master_price_[r];
      std::vector<Priced> priced = price(tried);
      bool improves = false;
      for (std::size_t b = 0; b < priced.size(); ++b) {
        double cost = 0;
        for (const auto& [row, load] : priced[b].loads)
          cost += load * capacity_[index(row)] * master_price_[index(row)];
        if (block_price_[b] - cost > kLeastColumnGain * (theta_ - best_.payments) / num_blocks_) {
          improves = true;
        } else {
          priced[b].loads.clear();
        }
      }
      if (improves) add(priced);
      if (improves || smoothing == 0 || deadline_.is_over()) return improves;
    }
  }

  const MessageProblem& problem_;
  double until_us_;
  const MessageColumnOptions& options_;
  const Deadline& deadline_;
  std::vector<double> capacity_ = {};  ///< bytes, per row and period
  std::vector<std::vector<std::size_t>> rows_of_link_ = {};
  std::vector<double> even_ = {};
  std::map<GpuId, int> block_of_ = {};
  int num_blocks_ = 0;
  std::unique_ptr<ColumnMaster> master_;
  double unit_ = 1;
  double theta_ = kInfinity;
  std::vector<double> master_price_ = {};
  std::vector<double> block_price_ = {};
  MessagePrices best_ = {};
  int times_priced_ = 0;
};

}  // namespace

MessagePricesCertificate message_certificate(const MessageProblem& problem, const MessagePrices& prices,
                                             std::size_t periods, int parts, double until_us) {
  PriceGrid grid{.from_us = {}, .moves_with_end = {}, .until_us = until_us};
  for (std::size_t k = 0; k < periods; ++k)
    grid.from_us.push_back(until_us * static_cast<double>(k) / static_cast<double>(periods));
  return {.prices = problem.rows.certificate(grid, prices.of_row), .parts = parts, .gpu = problem.gpu};
}

MessagePrices price_messages(const MessageProblem& problem, double until_us, const MessagePrices& start,
                             const MessageColumnOptions& options, const MakeColumnMaster& make_master,
                             const Deadline& deadline) {
  return MessageColumns(problem, until_us, options, make_master, deadline).run(start);
}

}  // namespace rondo
