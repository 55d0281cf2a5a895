#include "first_order_flow.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "path_stripping.hpp"
#include "rondo/parallel/work_log.hpp"

namespace rondo {
namespace {

/// Of the balance of the norms at the start: prices begin farther from their best than flows do.
constexpr double kStartWeight = 0.1;
/// How far a step goes is measured every so many steps.
constexpr int kMeasured = 8;
/// Restarts (Lu and Yang): a step is so much shorter than the first since the last restart; or somewhat, and
/// they become longer; or a share of all steps went by.
constexpr double kMuchShorter = 0.2;
constexpr double kShorter = 0.8;
constexpr double kLongShare = 0.36;
constexpr int kFewestSteps = 48;
/// Adding and subtracting it rounds to an integer.
constexpr double kRounding = 6755399441055744.0;  // 1.5 x 2^52
/// Sums of integers below it are exact.
constexpr double kExact = 4503599627370496.0;  // 2^52
/// A block's share of a row is counted up to so many times what the row carries at the expected theta.
constexpr double kMostOfRow = 4;

double squared(double x) {
  return x * x;
}

/// The point of { y >= 0, sum capacity y = 1 } nearest to y where distances are weighted by 1 / step, by
/// Newton's method on the multiplier, which begins at `shift` and is left there.
void project_prices(const std::vector<CapacityRow>& rows, const std::vector<double>& step, double& shift,
                    std::vector<double>& y) {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 100; ++k) {
    double excess = -1;
    double slope = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double value = y[r] - shift * step[r] * rows[r].capacity;
      if (value <= 0) continue;
      excess += rows[r].capacity * value;
      slope += step[r] * squared(rows[r].capacity);
    }
    if (std::abs(excess) < 1e-15) break;
    (excess > 0 ? low : high) = shift;
    double next = slope > 0 ? shift + excess / slope : high - 1;
    if (slope == 0) {  // every price would be 0: back to where the greatest begins
      next = -std::numeric_limits<double>::infinity();
      for (std::size_t r = 0; r < rows.size(); ++r)
        next = std::max(next, (y[r] - 0.5 / rows[r].capacity) / (step[r] * rows[r].capacity));
    }
    if (next <= low || next >= high) next = (low + high) / 2;
    if (next == shift || !std::isfinite(next)) break;
    shift = next;
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    y[r] = std::max(0.0, y[r] - shift * step[r] * rows[r].capacity);
}

}  // namespace

double FirstOrderFlow::bytes(const ConcurrentFlow& flow) {
  const auto each = static_cast<double>(3 * flow.graph.arcs.size()) + 4.0 * flow.graph.num_nodes;
  return each * static_cast<double>(flow.blocks.size() * sizeof(double));
}

FirstOrderFlow::FirstOrderFlow(const ConcurrentFlow& flow, const Communicator& communicator,
                               const std::vector<std::vector<ArcLoad>>& start, const Vector& row_price,
                               double theta)
    : flow_(flow), communicator_(communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  for (auto b = static_cast<std::size_t>(communicator.rank()); b < flow.blocks.size(); b += ranks)
    own_.push_back(b);
  const auto nodes = static_cast<std::size_t>(flow.graph.num_nodes);
  const std::size_t arcs = flow.graph.arcs.size();
  out_.resize(nodes);
  in_.resize(nodes);
  for (std::size_t a = 0; a < arcs; ++a) {
    out_[static_cast<std::size_t>(flow.graph.arcs[a].src)].push_back(a);
    in_[static_cast<std::size_t>(flow.graph.arcs[a].dst)].push_back(a);
  }
  rows_of_.resize(arcs);
  std::size_t most_terms = 1;
  for (std::size_t r = 0; r < flow.rows.size(); ++r) {
    most_terms = std::max(most_terms, flow.rows[r].arcs.size() * flow.blocks.size());
    for (const int a : flow.rows[r].arcs) rows_of_[static_cast<std::size_t>(a)].push_back(r);
  }
  most_units_ = std::floor(kExact / static_cast<double>(most_terms));
  for (const CapacityRow& row : flow.rows)
    to_unit_.push_back(most_units_ / (kMostOfRow * row.capacity * theta));
  unit_sums_.resize(flow.rows.size());

  amount_.now.assign(at(arcs), 0);
  potential_.now.assign(at(nodes), 0);
  wanted_.assign(at(nodes), 0);
  sourced_.resize(nodes);
  price_.now = row_price;
  length_ = arc_lengths(flow, row_price);
  ShortestPathSearch search(flow.graph);
  search.set_lengths(length_);
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const CommodityBlock& block = flow.blocks[own_[i]];
    sourced_[static_cast<std::size_t>(block.source)].push_back(i);
    for (const Sink& sink : block.sinks) wanted_[at(static_cast<std::size_t>(sink.node)) + i] += sink.amount;
    for (const ArcLoad& load : start[i])
      amount_.now[at(static_cast<std::size_t>(load.arc)) + i] = load.amount;
    const ShortestPaths paths = search.from(block.source);
    for (std::size_t v = 0; v < nodes; ++v) {
      if (std::isfinite(paths.distance[v])) potential_.now[at(v) + i] = paths.distance[v];
    }
  }
  amount_.began = amount_.now;
  reflected_ = amount_.now;
  potential_.began = potential_.now;
  potential_stepped_ = potential_.now;
  price_.began = price_.now;
  price_stepped_ = price_.now;

  // Steps as long as the start is large: both norms weighted as they are by steps of weight 1.
  set_steps(1);
  Vector of_flows(own_.size(), 0.0);
  Vector of_potentials(own_.size(), 0.0);
  for (std::size_t a = 0; a < arcs; ++a) {
    for (std::size_t i = 0; i < own_.size(); ++i)
      of_flows[i] += squared(amount_.now[at(a) + i]) / flow_step_[a];
  }
  for (std::size_t v = 0; v < nodes; ++v) {
    for (std::size_t i = 0; i < own_.size(); ++i)
      of_potentials[i] += squared(potential_.now[at(v) + i]) / potential_step_[v];
  }
  const double flows = sum_over_blocks(of_flows);
  double others = sum_over_blocks(of_potentials);
  for (std::size_t r = 0; r < flow.rows.size(); ++r) others += squared(row_price[r]) / price_step_[r];
  set_steps(kStartWeight * std::sqrt(flows / others));
}

/// The inverse of the sum of a column's and of a row's entries (Pock and Chambolle), times and over `weight`.
void FirstOrderFlow::set_steps(double weight) {
  flow_weight_ = weight;
  flow_step_.clear();
  for (const auto& rows : rows_of_) flow_step_.push_back(weight / (2 + static_cast<double>(rows.size())));
  potential_step_.clear();
  for (std::size_t v = 0; v < in_.size(); ++v)
    potential_step_.push_back(
        1 / (weight * static_cast<double>(std::max<std::size_t>(1, in_[v].size() + out_[v].size()))));
  price_step_.clear();
  for (const CapacityRow& row : flow_.rows)
    price_step_.push_back(1 / (weight * static_cast<double>(row.arcs.size() * flow_.blocks.size())));
}

/// Whole units of the sums of its rows. Ties between roundings do not matter, but are settled alike on every
/// rank.
void FirstOrderFlow::add_rounded(std::size_t arc, const double* amount) {
  for (const std::size_t r : rows_of_[arc]) {
    const double to_unit = to_unit_[r];
    const double most = most_units_;
    double sum = 0;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      double units = amount[i] * to_unit;
      units = units < most ? units : most;
      units = units > -most ? units : -most;
      sum += (units + kRounding) - kRounding;
    }
    unit_sums_[r] += sum;
  }
}

FirstOrderFlow::Vector FirstOrderFlow::rows_of_sums() const {
  log_even_parts(communicator_, flow_.blocks.size());
  Vector loads = communicator_.sum(unit_sums_);
  for (std::size_t r = 0; r < loads.size(); ++r) loads[r] /= to_unit_[r];
  return loads;
}

void FirstOrderFlow::move_flows(bool measures) {
  const std::size_t own = own_.size();
  std::ranges::fill(unit_sums_, 0.0);
  if (measures) std::ranges::fill(moved_, 0.0);
  const double keep = keep_;
  const double draw = draw_;
  for (std::size_t a = 0; a < flow_.graph.arcs.size(); ++a) {
    const Arc arc = flow_.graph.arcs[a];
    const double* from = potential_.now.data() + at(static_cast<std::size_t>(arc.src));
    const double* to = potential_.now.data() + at(static_cast<std::size_t>(arc.dst));
    const double* began = amount_.began.data() + at(a);
    double* now = amount_.now.data() + at(a);
    double* reflected = reflected_.data() + at(a);
    const double step = flow_step_[a];
    const double length = length_[a];
    for (std::size_t i = 0; i < own; ++i) {
      const double x = keep * reflected[i] + draw * began[i];
      const double moved = x - step * (length + from[i] - to[i]);
      const double stepped = moved > 0 ? moved : 0;
      now[i] = x;
      reflected[i] = 2 * stepped - x;
    }
    if (measures) {
      const double weight = 0.25 / step;  // reflected - now is twice the step
      for (std::size_t i = 0; i < own; ++i) moved_[i] += squared(reflected[i] - now[i]) * weight;
    }
    add_rounded(a, reflected);
  }
}

void FirstOrderFlow::move_potentials(bool measures) {
  const std::size_t own = own_.size();
  Vector missing(own);
  for (std::size_t v = 0; v < in_.size(); ++v) {
    std::copy_n(wanted_.data() + at(v), own, missing.data());
    for (const std::size_t a : in_[v]) {
      const double* amount = reflected_.data() + at(a);
      for (std::size_t i = 0; i < own; ++i) missing[i] -= amount[i];
    }
    for (const std::size_t a : out_[v]) {
      const double* amount = reflected_.data() + at(a);
      for (std::size_t i = 0; i < own; ++i) missing[i] += amount[i];
    }
    for (const std::size_t i : sourced_[v]) missing[i] = 0;
    const double step = potential_step_[v];
    if (measures) {
      for (std::size_t i = 0; i < own; ++i) moved_[i] += squared(missing[i]) * step;
      for (std::size_t i = 0; i < own; ++i)
        potential_stepped_[at(v) + i] = potential_.now[at(v) + i] + step * missing[i];
    }
    const double* began = potential_.began.data() + at(v);
    double* now = potential_.now.data() + at(v);
    const double keep = keep_;
    const double draw = draw_;
    for (std::size_t i = 0; i < own; ++i) now[i] = keep * (now[i] + 2 * step * missing[i]) + draw * began[i];
  }
}

void FirstOrderFlow::move_prices() {
  const Vector loads = rows_of_sums();
  for (std::size_t r = 0; r < loads.size(); ++r)
    price_stepped_[r] = price_.now[r] + price_step_[r] * loads[r];
  project_prices(flow_.rows, price_step_, shift_, price_stepped_);
}

double FirstOrderFlow::sum_over_blocks(const Vector& of_own_blocks) const {
  Vector all(flow_.blocks.size(), 0.0);
  for (std::size_t i = 0; i < own_.size(); ++i) all[own_[i]] = of_own_blocks[i];
  double sum = 0;
  for (const double value : communicator_.sum(std::move(all))) sum += value;
  return sum;
}

int FirstOrderFlow::run(int most) {
  moved_.assign(own_.size(), 0.0);
  keep_ = 0;
  draw_ = 1;
  double first = 0;
  double before = std::numeric_limits<double>::infinity();
  for (int k = 0;; ++k) {
    const bool measures = k % kMeasured == 0 || k + 1 >= most;
    move_flows(measures);
    keep_ = (k + 1.0) / (k + 2.0);
    draw_ = 1 / (k + 2.0);
    move_potentials(measures);
    move_prices();
    ++steps_;
    if (measures) {
      double moved = sum_over_blocks(moved_);
      for (std::size_t r = 0; r < flow_.rows.size(); ++r)
        moved += squared(price_stepped_[r] - price_.now[r]) / price_step_[r];
      moved = std::sqrt(moved);
      if (k == 0) first = moved;
      const bool is_short = moved <= kMuchShorter * first || (moved <= kShorter * first && moved > before);
      const bool is_long = k >= kFewestSteps && k > kLongShare * static_cast<double>(steps_);
      before = moved;
      if ((k > 0 && (is_short || is_long)) || k + 1 >= most) {
        restart();
        return k + 1;
      }
    }
    for (std::size_t r = 0; r < flow_.rows.size(); ++r)
      price_.now[r] = keep_ * (2 * price_stepped_[r] - price_.now[r]) + draw_ * price_.began[r];
    length_ = arc_lengths(flow_, price_.now);
  }
}

/// From the point stepped to; steps of flows become longer against those of prices as flows went farther.
void FirstOrderFlow::restart() {
  const std::size_t own = own_.size();
  Vector of_flows(own, 0.0);
  Vector of_potentials(own, 0.0);
  for (std::size_t a = 0; a < flow_.graph.arcs.size(); ++a) {
    for (std::size_t i = at(a); i < at(a + 1); ++i) {
      amount_.now[i] = std::max(0.0, 0.5 * (reflected_[i] + amount_.now[i]));
      of_flows[i - at(a)] += squared(amount_.now[i] - amount_.began[i]) / flow_step_[a];
    }
  }
  potential_.now = potential_stepped_;
  for (std::size_t v = 0; v < in_.size(); ++v) {
    for (std::size_t i = at(v); i < at(v + 1); ++i)
      of_potentials[i - at(v)] += squared(potential_.now[i] - potential_.began[i]) / potential_step_[v];
  }
  price_.now = price_stepped_;
  const double flows = sum_over_blocks(of_flows);
  double others = sum_over_blocks(of_potentials);
  for (std::size_t r = 0; r < flow_.rows.size(); ++r)
    others += squared(price_.now[r] - price_.began[r]) / price_step_[r];
  if (flows > 0 && others > 0)
    set_steps(flow_weight_ * std::clamp(std::sqrt(std::sqrt(flows / others)), 0.1, 10.0));
  amount_.began = amount_.now;
  potential_.began = potential_.now;
  price_.began = price_.now;
  length_ = arc_lengths(flow_, price_.now);

  std::ranges::fill(unit_sums_, 0.0);
  for (std::size_t a = 0; a < flow_.graph.arcs.size(); ++a) add_rounded(a, amount_.now.data() + at(a));
}

double FirstOrderFlow::expected_theta() const {
  const Vector loads = rows_of_sums();
  double theta = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) theta = std::max(theta, loads[r] / flow_.rows[r].capacity);
  Vector missing_cost(own_.size(), 0.0);
  for (std::size_t v = 0; v < in_.size(); ++v) {
    Vector missing(wanted_.begin() + static_cast<std::ptrdiff_t>(at(v)),
                   wanted_.begin() + static_cast<std::ptrdiff_t>(at(v + 1)));
    for (std::size_t i = 0; i < own_.size(); ++i) {
      for (const std::size_t a : in_[v]) missing[i] -= amount_.now[at(a) + i];
      for (const std::size_t a : out_[v]) missing[i] += amount_.now[at(a) + i];
      missing_cost[i] += std::abs(missing[i] * potential_.now[at(v) + i]);
    }
  }
  return theta + sum_over_blocks(missing_cost);
}

std::vector<std::vector<ArcLoad>> FirstOrderFlow::flows() const {
  std::vector<std::vector<ArcLoad>> flows;
  PathStripping stripping(flow_.graph, length_);
  Vector amount(flow_.graph.arcs.size());
  for (std::size_t i = 0; i < own_.size(); ++i) {
    for (std::size_t a = 0; a < amount.size(); ++a) amount[a] = amount_.now[at(a) + i];
    flows.push_back(stripping.exact_flow(flow_.blocks[own_[i]], amount));
  }
  return flows;
}

}  // namespace rondo
