#include "joint_program.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMostJointPeriods = 32;
constexpr std::size_t kFewestJointPeriods = 4;
/// Ways at first are of fewest links, and of no more than these; one a pair of places and period.
constexpr double kMostFirstLinks = 6;
constexpr std::size_t kMostFirstWays = 4000;
/// Columns times rows of all programs together, and for how much of it a start counts that is looked at for
/// ways.
constexpr double kWorkOfStart = 200;
constexpr double kMostJointWork = 1e8;
constexpr int kMostJointPrograms = 40;
/// Rounds of minimum cuts in which the share does not fall.
constexpr int kMostVainCuts = 4;
/// A share of which the program need not tell more: all is carried.
constexpr double kMostCarriedShare = 2;
/// The scale of the objective: CLP's tolerance is absolute.
constexpr double kJointScale = 1e4;
/// Relative: what weighs less is left out, by how much prices are raised for rounding, and what a way has to
/// pay too little, or a cut to be short of, to be added.
constexpr double kLeastWeight = 1e-7;
constexpr double kPriceMargin = 1e-6;
constexpr double kLeastLack = 1e-7;
/// Of the end: times that are less apart are one.
constexpr double kSameTime = 2e-9;
/// Of the end: by so much it is earlier than prices prove without rounding.
constexpr double kBackOff = 1e-8;

}  // namespace

JointProgram::JointProgram(const Topology& topology, const Demand& demand, const Symmetry& symmetry,
                           const Solver& solver, const Deadline& deadline)
    : topology_(topology),
      demand_(demand),
      solver_(solver),
      deadline_(deadline),
      ways_(topology),
      periods_(topology, ways_),
      rows_(topology, symmetry),
      rows_of_link_(topology.num_links()) {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::map<LinkId, double> times;
    for (const LinkId l : rows_.all()[r].links) ++times[l];
    for (const auto& [l, count] : times) rows_of_link_[l.index()].emplace_back(r, count);
  }
  unit_bytes_ = 0;
  for (const Contribution& part : demand.contributions()) unit_bytes_ += part.bytes;
  find_pairs(symmetry);
  find_targets(symmetry);
}

bool JointProgram::has_work_left() const {
  return work_ < kMostJointWork && pairs_.size() * kFewestJointPeriods <= kMostFirstWays;
}

/// The last that begins then or before; as many as there are where that is the end.
std::size_t JointProgram::period_near(double us) const {
  const double near_us = us + kSameTime * grid_.until_us;
  return near_us >= grid_.until_us ? grid_.size() : grid_.period_at(std::max(near_us, 0.0));
}

JointProgram::Opening JointProgram::opening_of(const std::vector<Moment>& moments) const {
  Opening opening;
  for (const auto& [us, before_end] : moments)
    opening.push_back(period_near(before_end ? grid_.until_us - us : us));
  return opening;
}

std::vector<JointProgram::Moment> JointProgram::moments_of(const Opening& opening) const {
  std::vector<Moment> moments;
  for (const std::size_t period : opening) {
    const bool before_end = period == grid_.size() || grid_.moves_with_end[period];
    const double us = time_of(grid_, period);
    moments.push_back({before_end ? grid_.until_us - us : us, before_end});
  }
  return moments;
}

void JointProgram::start(double us) {
  grid_ = periods_.until(us, std::clamp(kMostFirstWays / std::max<std::size_t>(1, pairs_.size()),
                                        kFewestJointPeriods, kMostJointPeriods));
  columns_.clear();
  cuts_.clear();
  add_first_ways();
  add_first_cuts();
}

/// Those of fewest links, one for each pair of places and period.
void JointProgram::add_first_ways() {
  add_ways(std::vector<double>(grid_.size() * topology_.num_links(), 1), {}, kMostFirstLinks + 1, -kInfinity);
}

void JointProgram::add_first_cuts() {
  const std::size_t nodes = topology_.num_nodes();
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    const NodeId node = topology_.node_of(targets_[t].gpu);
    std::vector<char> closed(nodes, 0);
    closed[node.index()] = 1;
    add_cut_around(t, closed, true);
    if (const auto chassis = topology_.node(node).chassis) {
      for (std::size_t n = 0; n < nodes; ++n) closed[n] = topology_.nodes()[n].chassis == chassis ? 1 : 0;
      add_cut_around(t, closed, true);
      add_cut_around(t, closed, false);
    }
    for (std::size_t n = 0; n < nodes; ++n) closed[n] = 1;
    add_cut_around(t, closed, false);
    for (const std::vector<Moment>& moments : targets_[t].known) add_cut(t, opening_of(moments));
  }
}

void JointProgram::add_cut_around(std::size_t target, const std::vector<char>& closed, bool is_flat) {
  const Target& of = targets_[target];
  Opening opening;
  for (std::size_t n = 0; n < closed.size(); ++n) {
    double us = of.earliest_us[n];
    if (closed[n]) us = is_flat ? grid_.until_us : std::max(us, grid_.until_us - of.behind_us[n]);
    opening.push_back(ways_.is_place(NodeId(n)) ? period_near(us) : 0);
  }
  add_cut(target, std::move(opening));
}

/// Whether it is a new one that something has to pass.
bool JointProgram::add_cut(std::size_t target, Opening opening) {
  const Target& of = targets_[target];
  opening[topology_.node_of(of.gpu).index()] = grid_.size();
  double bytes = 0;
  for (const auto& [from, amount] : of.bytes_of) {
    if (time_of(grid_, opening[from.first.index()]) <= from.second) bytes += amount;
  }
  if (!(bytes > 0)) return false;
  for (const Cut& cut : cuts_) {
    if (cut.target == target && cut.openings.front() == opening) return false;
  }
  Cut cut{.target = target, .bytes = bytes, .gpus = {}, .openings = {}};
  for (const Permutation& element : of.elements) {
    Opening image(opening.size());
    for (std::size_t n = 0; n < opening.size(); ++n) image[element.node[n].index()] = opening[n];
    cut.openings.push_back(std::move(image));
    cut.gpus.push_back(topology_.gpu_of(element.node[topology_.node_of(of.gpu).index()]));
  }
  cuts_.push_back(std::move(cut));
  return true;
}

double JointProgram::share_through(const Cut& cut, const Column& way) const {
  double count = 0;
  for (const Opening& opening : cut.openings) {
    if (is_open(opening, way.from, way.message_us, way.until_us) &&
        is_closed(opening, way.to, way.arrival_us))
      ++count;
  }
  return count / static_cast<double>(cut.openings.size());
}

std::optional<JointPrices> JointProgram::solve(double us) {
  start(us);
  double least_share = kInfinity;
  int vain = 0;
  for (int i = 0; i < kMostJointPrograms && has_work_left() && !deadline_.is_over(); ++i) {
    std::optional<Solved> solved = solve_program();
    if (!solved) return std::nullopt;
    if (solved->share < 1) {
      if (add_ways(solved->prices)) continue;
      remember(solved->prices);
      return std::move(solved->prices);
    }
    vain = solved->share < least_share * (1 - kLeastLack) ? 0 : vain + 1;
    least_share = std::min(least_share, solved->share);
    if (vain == kMostVainCuts || !add_minimum_cuts(*solved)) return std::nullopt;
  }
  return std::nullopt;
}

/// Cuts that have a weight, for other ends.
void JointProgram::remember(const JointPrices& prices) {
  for (Target& target : targets_) target.known.clear();
  for (const auto& [number, weight] : prices.cuts)
    targets_[cuts_[number].target].known.push_back(moments_of(cuts_[number].openings.front()));
}

std::optional<JointProgram::Solved> JointProgram::solve_program() {
  LinearModel model;
  for (std::size_t period = 0; period < grid_.size(); ++period) {
    for (const AlikeRows& alike : rows_.all()) {
      model.add_row(-kInfinity, alike.GBps * kBytesPerUsPerGBps * grid_.length_us(period) / unit_bytes_);
    }
  }
  const int first_cut = model.num_rows();
  const int share = model.add_column(0, kMostCarriedShare, -kJointScale);
  for (const Cut& cut : cuts_) model.add_entry(model.add_row(0, kInfinity), share, -cut.bytes);
  for (const Column& way : columns_) {
    const int column = model.add_column(0, kInfinity, 0);
    std::map<int, double> loads;
    for (const auto& [link, period] : way.starts) {
      for (const auto& [row, times] : rows_of_link_[link.index()])
        loads[static_cast<int>(period * rows_.size() + row)] += times;
    }
    for (const auto& [row, load] : loads) model.add_entry(row, column, load);
    for (std::size_t k = 0; k < cuts_.size(); ++k) {
      const double through = share_through(cuts_[k], way);
      if (through > 0) model.add_entry(first_cut + static_cast<int>(k), column, through);
    }
  }
  work_ += static_cast<double>(model.num_rows()) * model.num_columns();
  const Solution solution = solver_.solve(model, deadline_.left_of({}));
  if (solution.status != SolveStatus::optimal) return std::nullopt;
  Solved solved{.share = solution.x.front(), .amount = {solution.x.begin() + 1, solution.x.end()}};
  solved.prices.grid = grid_;
  for (int row = 0; row < first_cut; ++row)
    solved.prices.of_row.push_back(std::max(0.0, -solution.row_dual[index(row)] / kJointScale) / unit_bytes_);
  double most = 0;
  for (std::size_t k = 0; k < cuts_.size(); ++k) {
    const double weight = solution.row_dual[index(first_cut) + k] / kJointScale;
    most = std::max(most, weight);
    solved.prices.cuts.push_back({k, weight / unit_bytes_});
  }
  std::erase_if(solved.prices.cuts, [&](const JointPrices::Cut& cut) {
    return !(cut.weight * unit_bytes_ > kLeastWeight * most);
  });
  return solved;
}

/// Those that pay too little. Returns whether there are some.
bool JointProgram::add_ways(const JointPrices& prices) {
  std::vector<double> cost;
  for (std::size_t period = 0; period < grid_.size(); ++period) {
    for (const auto& rows : rows_of_link_) {
      double& of_link = cost.emplace_back(0);
      for (const auto& [row, times] : rows) of_link += times * prices.of_row[period * rows_.size() + row];
    }
  }
  std::vector<WeightedOpening> openings;
  double whole = 0;
  for (const auto& [number, weight] : prices.cuts) {
    for (const Opening& opening : cuts_[number].openings)
      openings.push_back({&opening, weight / static_cast<double>(cuts_[number].openings.size())});
    whole += weight;
  }
  return add_ways(cost, openings, whole, kLeastLack * whole);
}

bool JointProgram::add_ways(const std::vector<double>& cost, const std::vector<WeightedOpening>& openings,
                            double most_cost, double least_lack) {
  std::map<NodeId, std::set<NodeId>> looked_at;
  for (const auto& orbit : pairs_) looked_at[orbit.front().first].insert(orbit.front().second);
  bool is_new = false;
  for (const auto& entry : looked_at) {
    const NodeId from = entry.first;
    const std::set<NodeId>& ends = entry.second;
    for (const double message_us : ways_.message_costs_us(from)) {
      std::map<std::pair<NodeId, std::size_t>, std::pair<double, Column>> best;  // by end and first period
      ways_.search(grid_, cost, from, message_us, most_cost, [&](const FoundWay& way) {
        if (!ends.contains(way.to) || way.arrival_us >= grid_.until_us) return;
        double lacks = -way.cost;
        for (const WeightedOpening& cut : openings) {
          if (is_closed(*cut.opening, way.to, way.arrival_us) &&
              is_open(*cut.opening, from, message_us, way.until_us))
            lacks += cut.weight;
        }
        if (lacks <= least_lack) return;
        std::vector<TimedStart> starts = ways_.starts(way.step);
        const auto key = std::pair(way.to, starts.front().period);
        const auto known = best.find(key);
        if (known != best.end() && known->second.first >= lacks) return;
        best[key] = {lacks, {from, way.to, message_us, std::move(starts), way.until_us, way.arrival_us}};
      });
      work_ += kWorkOfStart * static_cast<double>(ways_.work());
      for (auto& [key, way] : best) columns_.push_back(std::move(way.second));
      is_new = is_new || !best.empty();
    }
  }
  return is_new;
}

/// Of what is dealt out, for each target: where less than it wants reaches it in time.
bool JointProgram::add_minimum_cuts(const Solved& solved) {
  const std::size_t periods = grid_.size();
  Digraph graph{static_cast<int>(topology_.num_nodes() * periods) + 2, {}};
  std::vector<double> capacity;
  const int root = graph.num_nodes - 2;
  const int end = graph.num_nodes - 1;
  const auto at = [&](NodeId n, std::size_t period) {
    return static_cast<int>(n.index() * periods + period);
  };
  const auto add = [&](int from, int to, double amount) {
    graph.arcs.push_back({from, to});
    capacity.push_back(amount);
  };
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, double>
      dealt;  // pair orbit, from when, to when
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Column& way = columns_[c];
    if (!(solved.amount[c] > 0)) continue;
    // The last periods in which a cut may open so that it is open where the way begins, and not closed where
    // it ends.
    std::size_t latest = periods - 1;
    while (latest > 0 && !(time_of(grid_, latest) + way.message_us < way.until_us)) --latest;
    std::size_t arrival = periods - 1;
    while (arrival > 0 && way.arrival_us < time_of(grid_, arrival)) --arrival;
    dealt[{pair_orbit_[pair(way.from, way.to)], latest, arrival}] += solved.amount[c];
  }
  for (const auto& [way, amount] : dealt) {
    const auto& [orbit, from_period, to_period] = way;
    for (const auto& [from, to] : pairs_[orbit])
      add(at(from, from_period), at(to, to_period), amount / static_cast<double>(pairs_[orbit].size()));
  }
  for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
    for (std::size_t period = 0; ways_.is_place(NodeId(n)) && period + 1 < periods; ++period)
      add(at(NodeId(n), period), at(NodeId(n), period + 1), kMostCarriedShare * 2);
  }
  const std::size_t common = graph.arcs.size();
  bool is_new = false;
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    const Target& target = targets_[t];
    graph.arcs.resize(common);
    capacity.resize(common);
    double wanted = 0;
    for (const auto& [from, bytes] : target.bytes_of) {
      add(root, at(from.first, grid_.period_at(from.second)), bytes);
      wanted += bytes;
    }
    add(at(topology_.node_of(target.gpu), periods - 1), end, kMostCarriedShare * 2);
    const MinCut cut = min_cut(graph, capacity, root, end);
    if (cut.value >= wanted * (1 - kLeastLack)) continue;
    Opening opening(topology_.num_nodes(), 0);
    for (std::size_t n = 0; n < opening.size(); ++n) {
      if (!ways_.is_place(NodeId(n))) continue;
      while (opening[n] < periods && !cut.source_side[index(at(NodeId(n), opening[n]))]) ++opening[n];
    }
    is_new = add_cut(t, std::move(opening)) || is_new;
  }
  return is_new;
}

JointCutsCertificate JointProgram::certificate(const JointPrices& found, const PriceGrid& grid) const {
  SeamedPrices seamed = with_seams(grid, found.of_row);
  for (double& of_row : seamed.price) of_row *= 1 + kPriceMargin;
  JointCutsCertificate joint{.prices = rows_.certificate(seamed.grid, seamed.price), .cuts = {}};
  for (const auto& [number, weight] : found.cuts) {
    const Cut& cut = cuts_[number];
    for (std::size_t i = 0; i < cut.gpus.size(); ++i) {
      WeightedTimeCut& image = joint.cuts.emplace_back();
      image.gpu = cut.gpus[i];
      image.weight = weight / static_cast<double>(cut.gpus.size());
      for (const std::size_t period : cut.openings[i]) image.alpha_us.push_back(time_of(grid, period));
    }
  }
  return joint;
}

PriceGrid JointProgram::later(const JointPrices& found) const {
  double payments = 0;
  for (const auto& [number, weight] : found.cuts) payments += weight * cuts_[number].bytes * unit_bytes_;
  auto [grid, price] = with_seams(found.grid, found.of_row);
  double earned = 0;
  for (std::size_t period = 0; period < grid.size(); ++period)
    earned += rows_.earned_per_us(price, period) * grid.length_us(period);
  earned *= 1 + kPriceMargin;
  for (double& of_row : price) of_row *= (1 + kPriceMargin) / earned;
  const double by_us = rows_.newton_step(grid, price, payments / earned) - kBackOff * grid.until_us;
  return moved(found.grid, by_us, kSameBegin);
}

}  // namespace rondo
