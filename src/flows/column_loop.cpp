#include "rondo/flows/column_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "block_pool.hpp"
#include "first_order_flow.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"

namespace rondo {
namespace {

/// Of the prices, that of all rows alike: keeps ways that cost nothing short, for this much of the bound.
constexpr double kUniformShare = 1e-8;
/// Share of the best prices so far in those that are priced.
constexpr double kSmoothing = 0.8;
/// What a column has to gain, relative to theta.
constexpr double kImprovement = 1e-10;
/// Growth of the prices of multiplicative weights.
constexpr double kSharpness = 0.5;
/// Columns a block that the master keeps beyond those it uses, and calls of it that they may stay unused.
constexpr std::size_t kColumnsPerBlock = 30;
/// Of the first-order method, on all ranks together, beyond which masters go on alone.
constexpr double kMostBytesOfSteps = 1e9;

/// An iteration of the simplex method for each row and block against a step for each arc and block.
constexpr double kWorkOfIteration = 75;

class ColumnLoop {
 public:
  ColumnLoop(const ConcurrentFlow& flow, const ColumnOptions& options, const MakeColumnMaster& make_master,
             const Communicator& communicator, const std::function<void(const ColumnProgress&)>& progress)
      : flow_(flow),
        options_(options),
        make_master_(make_master),
        communicator_(communicator),
        progress_(progress),
        pool_(flow, communicator),
        uniform_(normalised_prices(flow, std::vector<double>(flow.rows.size(), 0.0))),
        best_price_(uniform_) {}

  ColumnSolution run() {
    if (!resume_from_state()) {
      on_root(communicator_, [&] {
        new_master();
        return Bytes{};
      });
      warm_up();
      for (const std::vector<double>& start : options_.start_prices) price(normalised_prices(flow_, start));
    }
    for (; iteration_ <= options_.max_iterations && simplex_iterations_left() != 0 && !is_done() && !stop();
         ++iteration_) {
      if (iteration_ % options_.masters_per_state == 0) take_state();
      if (masters_are_slow()) {
        take_first_order_steps();
        if (is_done() || stop()) break;
      }
      if (!solve_master()) break;
      report();
      if (is_done()) break;
      if (!add_improving_columns()) break;  // the master's prices prove its theta, up to rounding errors
    }
    if (options_.checkpoints && !state_is_kept_ && interrupted())
      options_.checkpoints->keep(communicator_, options_.state_name, [&] { return state_; });
    return result();
  }

 private:
  /// What a state holds.
  friend auto members_of(SameAs<ColumnLoop> auto& loop) {
    auto& solution = loop.solution_;
    return std::tie(loop.iteration_, loop.unit_, loop.basis_, loop.pool_, loop.best_price_, solution.bound,
                    solution.theta, solution.history, solution.simplex_iterations,
                    solution.first_order_steps);
  }

  /// Collective. False where there is none.
  bool resume_from_state() {
    if (!options_.checkpoints) return false;
    const auto state = options_.checkpoints->newest(communicator_, options_.state_name);
    if (!state) return false;
    MessageReader(*state).read(*this);
    return true;
  }

  void new_master() {
    master_ = make_master_(static_cast<int>(flow_.rows.size()), static_cast<int>(flow_.blocks.size()));
  }

  /// Collective. Where there is no master yet, all of this is a state's.
  void take_state() {
    on_root(communicator_, [&] {
      if (master_) basis_ = master_->basis();
      new_master();
      master_->add(pool_.for_master(0, unit_));
      master_->start_from(basis_);
      return Bytes{};
    });
    if (!options_.checkpoints) return;
    if (communicator_.is_root()) state_ = to_message(*this);
    state_is_kept_ = options_.checkpoints->offer(communicator_, options_.state_name, [&] { return state_; });
  }

  std::vector<PricedBlock> price(const std::vector<double>& row_price) {
    const Stopwatch clock;
    const std::vector<double> floored = mixed_prices(row_price, uniform_, kUniformShare);
    std::vector<PricedBlock> priced = pool_.price(floored);
    double bound = 0;
    for (const PricedBlock& block : priced) bound += block.cost;
    take_bound(bound, floored);
    solution_.pricing_s += clock.seconds();
    return priced;
  }

  void take_bound(double bound, const std::vector<double>& row_price) {
    if (bound <= solution_.bound) return;
    solution_.bound = bound;
    best_price_ = row_price;
  }

  /// Prices grow exponentially with the loads of the average of all trees so far. Averages are columns as
  /// well, and good ones; beside them the last trees go to the master.
  void warm_up() {
    const std::size_t rows = flow_.rows.size();
    BlockFlows average(flow_);
    std::vector<double> row_price = uniform_;
    std::vector<PricedBlock> priced;
    for (int k = 0; k < std::max(1, options_.warm_up) && (k == 0 || !stop()); ++k) {
      priced = price(row_price);
      if (k == 0) unit_ = solution_.bound;
      average.add(priced, 1.0 / (k + 1));
      const std::vector<double> loads = average.row_loads();
      const double greatest = *std::max_element(loads.begin(), loads.end());
      for (std::size_t r = 0; r < rows; ++r) {
        row_price[r] = std::exp(kSharpness * (k + 1) * (loads[r] / greatest - 1)) / flow_.rows[r].capacity;
      }
      row_price = normalised_prices(flow_, std::move(row_price));
    }
    if (options_.warm_up > 1) {
      add(priced);
      priced = average.columns();
    }
    take_flow(priced);
  }

  void add(const std::vector<PricedBlock>& priced) {
    const std::size_t first = pool_.size();
    pool_.add(priced);
    on_root(communicator_, [&] {
      master_->add(pool_.for_master(first, unit_));
      return Bytes{};
    });
  }

  /// Collective. False where a limit ended it.
  bool solve_master() {
    const Stopwatch clock;
    const std::vector<char> flags = pool_.prune(kColumnsPerBlock * flow_.blocks.size());
    const Bytes answer = on_root(communicator_, [&] {
      if (!flags.empty()) master_->keep(flags);
      SolveLimits limits = options_.limits;
      if (limits.time_limit_s >= 0)
        limits.time_limit_s = std::max(0.0, limits.time_limit_s - clock_.seconds());
      limits.max_iterations = simplex_iterations_left();
      return to_message(master_->solve(limits));
    });
    auto master = from_message<MasterSolution>(answer);
    solution_.simplex_iterations += master.iterations;
    solution_.master_s += clock.seconds();
    if (master.status == SolveStatus::failed)
      throw Error(ExitCode::internal, "the master of the columns ended 'failed'; use --lp-solver clp");
    if (master.status != SolveStatus::optimal) return false;
    solution_.theta = master.theta * unit_;
    pool_.take_weights(std::move(master.weight));
    for (std::size_t r = 0; r < flow_.rows.size(); ++r) master.row_price[r] /= flow_.rows[r].capacity;
    master_price_ = normalised_prices(flow_, std::move(master.row_price));
    block_price_ = std::move(master.block_price);
    for (double& value : block_price_) value *= unit_;
    return true;
  }

  /// Once masters have done as much work as the first-order method is likely to need: where they are soon
  /// done, steps are never begun, and where they are not, little was lost.
  bool masters_are_slow() const {
    if (options_.most_steps == 0 || solution_.first_order_steps > 0) return false;
    const auto size = [](const auto& all) { return static_cast<double>(all.size()); };
    const double of_masters = kWorkOfIteration * static_cast<double>(solution_.simplex_iterations) *
                              (size(flow_.rows) + size(flow_.blocks));
    const double of_steps = options_.likely_steps * size(flow_.graph.arcs) * size(flow_.blocks);
    return of_masters >= of_steps && FirstOrderFlow::bytes(flow_) <= kMostBytesOfSteps;
  }

  /// -1: any number.
  std::int64_t simplex_iterations_left() const {
    const std::int64_t most = options_.limits.max_iterations;
    return most < 0 ? -1 : std::max<std::int64_t>(0, most - solution_.simplex_iterations);
  }

  /// Collective. What the first-order method finds last goes to the master.
  void take_first_order_steps() {
    const Stopwatch clock;
    FirstOrderFlow method(flow_, communicator_, pool_.own_flow(), best_price_, solution_.theta);
    std::int64_t& steps = solution_.first_order_steps;
    while (steps < options_.most_steps && !is_done() && !stop()) {
      steps += method.run(static_cast<int>(options_.most_steps - steps));
      const std::vector<double> floored =
          mixed_prices(normalised_prices(flow_, method.row_price()), uniform_, kUniformShare);
      take_bound(pool_.least_cost(floored), floored);
      const double least = std::max(solution_.bound, options_.enough) * (1 + options_.gap);
      if (method.expected_theta() <= least || steps == options_.most_steps)
        take_flow(pool_.gather(method.flows()));
      if (progress_) progress_({iteration_, solution_.theta, solution_.bound, pool_.size()});
    }
    solution_.steps_s += clock.seconds();
  }

  /// Columns that are a flow together: the best one from now on, where it is better.
  void take_flow(const std::vector<PricedBlock>& flow) {
    std::vector<double> loads(flow_.rows.size(), 0.0);
    for (const PricedBlock& block : flow) {
      for (const RowLoad& load : block.rows) loads[static_cast<std::size_t>(load.row)] += load.theta;
    }
    const double theta = *std::max_element(loads.begin(), loads.end());
    const std::size_t first = pool_.size();
    add(flow);
    if (theta >= solution_.theta) return;
    solution_.theta = theta;
    std::vector<double> weight(pool_.size(), 1.0);
    std::fill_n(weight.begin(), first, 0.0);
    pool_.take_weights(std::move(weight));
  }

  /// Prices between the best and the master's; where that yields nothing to add, nearer to the master's.
  bool add_improving_columns() {
    for (double smoothing = kSmoothing;; smoothing = smoothing > 0.1 ? smoothing / 2 : 0.0) {
      const std::vector<double> best = best_price_;
      std::vector<PricedBlock> priced = price(mixed_prices(best, master_price_, 1 - smoothing));
      bool improves = false;
      for (PricedBlock& block : priced) {
        double cost = 0;
        for (const RowLoad& load : block.rows) {
          const auto r = static_cast<std::size_t>(load.row);
          cost += load.theta * flow_.rows[r].capacity * master_price_[r];
        }
        const double gain = block_price_[static_cast<std::size_t>(block.block)] - cost;
        if (gain > kImprovement * solution_.theta) {
          improves = true;
        } else {
          block.loads.clear();
        }
      }
      if (is_done()) return false;
      if (improves) {
        add(priced);
        return true;
      }
      if (smoothing == 0 || stop()) return false;
    }
  }

  bool within_gap() const { return solution_.theta <= solution_.bound * (1 + options_.gap); }
  bool is_done() const {
    const double enough = options_.enough * (1 + options_.gap);
    return enough > 0 ? solution_.theta <= enough || solution_.bound > enough : within_gap();
  }

  /// Collective: clocks and signals differ between ranks.
  bool stop() {
    const SolveLimits& limits = options_.limits;
    const bool late = limits.time_limit_s >= 0 && clock_.seconds() >= limits.time_limit_s;
    return communicator_.max(late ? 1 : 0) > 0 || interrupted();
  }

  /// Collective.
  bool interrupted() const {
    const std::atomic<bool>* interrupt = options_.limits.interrupt;
    return communicator_.max(interrupt != nullptr && interrupt->load() ? 1 : 0) > 0;
  }

  void report() {
    solution_.history.push_back({iteration_, solution_.theta, solution_.bound, pool_.size()});
    if (progress_) progress_(solution_.history.back());
  }

  ColumnSolution result() {
    const bool solved = std::isfinite(solution_.theta);
    solution_.status = !solved        ? SolveStatus::no_solution
                       : within_gap() ? SolveStatus::optimal
                                      : SolveStatus::feasible;
    if (solved) solution_.flow = pool_.flow();
    solution_.row_price = best_price_;
    return std::move(solution_);
  }

  const ConcurrentFlow& flow_;
  const ColumnOptions& options_;
  const MakeColumnMaster& make_master_;
  const Communicator& communicator_;
  const std::function<void(const ColumnProgress&)>& progress_;
  const Stopwatch clock_;
  int iteration_ = 1;
  BlockPool pool_;
  std::unique_ptr<ColumnMaster> master_;  ///< on the root
  MasterBasis basis_;                     ///< on the root: where the master began that was made last
  Bytes state_;                           ///< on the root: the newest
  bool state_is_kept_ = true;
  double unit_ = 1;  ///< of the master's theta
  std::vector<double> uniform_;
  std::vector<double> best_price_;
  std::vector<double> master_price_;
  std::vector<double> block_price_;
  ColumnSolution solution_;
};

}  // namespace

ColumnSolution solve_by_columns(const ConcurrentFlow& flow, const ColumnOptions& options,
                                const MakeColumnMaster& make_master, const Communicator& communicator,
                                const std::function<void(const ColumnProgress&)>& progress) {
  return ColumnLoop(flow, options, make_master, communicator, progress).run();
}

}  // namespace rondo
