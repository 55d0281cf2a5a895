#include "rondo/bounds/prices.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "priced_rows.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/flows/column_loop.hpp"

namespace rondo {
namespace {

/// Ends tried.
constexpr int kMostEnds = 24;
/// Of the bound: what a step has to gain.
constexpr double kLeastMove = 1e-6;
/// By so much an end is earlier that is to be proven where the one before was barely not.
constexpr double kLeastStepBack = 2 * kLeastMove;
/// By this much the first end is later than what is proven.
constexpr double kFirstGain = 1e-6;
constexpr std::size_t kMostPeriods = 24;
/// With fewer there is little to gain.
constexpr std::size_t kLeastPeriods = 6;
/// Pricings of a flow, and how near its prices are to the best.
constexpr int kMostMasters = 200;
constexpr double kColumnsGap = 1e-6;
/// Arcs looked at by pricings, of all ends together; about 0.5 s.
constexpr double kMostWork = 2e7;
/// The same of masters: iterations of the simplex method for each row and block; about 1 s.
constexpr double kMostSimplexWork = 4e6;
/// Pricings of a flow that there has to be work for.
constexpr double kLeastPricings = 60;

/// Of data that origins send which are alike: that of one of them.
struct AlikeOrigins {
  NodeId origin;
  double ready_us = 0;
  std::map<int, double> bytes_to;  ///< per node; of all origins together
};

class PricesSearch {
 public:
  PricesSearch(const Topology& topology, const Demand& demand, const Symmetry& symmetry,
               const MakeColumnMaster& make_master, const Deadline& deadline)
      : topology_(topology),
        demand_(demand),
        make_master_(make_master),
        deadline_(deadline),
        delays_us_(delays_of(topology)),
        rows_(topology, symmetry),
        communicator_(make_local_communicator()) {
    join_origins(symmetry);
    number_places();
  }

  std::optional<LowerBound> run(double least_us) {
    proven_us_ = least_us;
    Trial early{std::max(least_us, earliest_us()) * (1 + kFirstGain), kInfinity};
    Trial late{kInfinity, 0};
    double us = early.us;
    const std::size_t periods = most_periods();
    for (int step = 0; step < kMostEnds && periods >= kLeastPeriods && !deadline_.is_over(); ++step) {
      const PriceGrid grid = price_grid(delays_us_, us, periods);
      const auto prices = prices_at(grid, step == 0);
      if (!prices) break;
      const double gain_us = std::min(us, rows_.newton_step(grid, prices->of_row, prices->payments));
      if (prices->payments > 1) {
        keep(rows_.certificate(grid, prices->of_row));
        keep(rows_.certificate(moved(grid, gain_us), prices->of_row));
        early = {us, prices->payments};
      } else {
        late = {us, prices->payments};
      }
      if (late.us - proven_us_ < kLeastMove * us) break;
      double next_us = next_end(early, late, us + gain_us, step % 2 == 1);
      // Prices that do not quite prove this end prove one that is a little earlier.
      if (us == late.us && next_us > us * (1 - kLeastMove)) next_us = us * (1 - kLeastStepBack);
      if (std::abs(next_us - us) < kLeastMove * us) break;
      us = next_us;
    }
    return std::move(best_);
  }

 private:
  /// An end, and what all bytes have to pay to be there before it, relative to what links earn.
  struct Trial {
    double us;
    double payments;
  };

  /// Between an end that is proven to be too early and one that is not; at first as Newton's step has it,
  /// then by the chord and by halves in turn.
  double next_end(const Trial& early, const Trial& late, double newton_us, bool by_halves) const {
    if (late.us == kInfinity) return newton_us;
    const double least_us = std::max(early.us, proven_us_);
    if (newton_us > least_us && newton_us < late.us && !by_halves) return newton_us;
    const double chord_us =
        early.us + (late.us - early.us) * (early.payments - 1) / (early.payments - late.payments);
    return by_halves || !(chord_us > least_us) ? 0.5 * (least_us + late.us) : chord_us;
  }

  struct Prices {
    std::vector<double> of_row;  ///< period by period; what rows earn sums to 1
    double payments = 0;
  };

  void join_origins(const Symmetry& symmetry) {
    std::map<int, std::set<GpuId>> origins_of_orbit;
    const auto orbit = [&](GpuId g) { return symmetry.node_orbit[topology_.node_of(g).index()]; };
    for (const Contribution& part : demand_.contributions())
      origins_of_orbit[orbit(part.origin)].insert(part.origin);
    std::map<std::pair<GpuId, double>, AlikeOrigins> of_first;
    for (const Contribution& part : demand_.contributions()) {
      const std::set<GpuId>& alike = origins_of_orbit[orbit(part.origin)];
      if (part.origin != *alike.begin()) continue;
      AlikeOrigins& known = of_first[{part.origin, part.ready_us}];
      known.origin = topology_.node_of(part.origin);
      known.ready_us = part.ready_us;
      known.bytes_to[topology_.node_of(part.destinations.front()).value] +=
          part.bytes * static_cast<double>(alike.size());
    }
    for (auto& [key, alike] : of_first) origins_.push_back(std::move(alike));
  }

  /// Nodes, and behind them a place for each message cost of what begins there.
  void number_places() {
    num_places_ = topology_.num_nodes();
    std::map<std::pair<NodeId, double>, std::size_t> behind;
    for (const Link& link : topology_.links()) {
      const double message_us = topology_.message_us_at_start(link);
      std::size_t from = link.src.index();
      if (message_us > 0) {
        const auto [known, is_new] = behind.try_emplace({link.src, message_us}, num_places_);
        if (is_new) waits_.emplace_back(from, num_places_++, message_us);
        from = known->second;
      }
      tail_of_link_.push_back(from);
    }
  }

  /// Before it something cannot be where it is wanted.
  double earliest_us() const {
    std::vector<double> delay_us;
    for (const Link& link : topology_.links())
      delay_us.push_back(link.latency_us + topology_.message_us_at_start(link));
    ShortestPathSearch search(topology_.graph());
    search.set_lengths(delay_us);
    double latest = 0;
    for (const AlikeOrigins& alike : origins_) {
      const std::vector<double> distance = search.from(alike.origin.value).distance;
      for (const auto& [to, bytes] : alike.bytes_to)
        latest = std::max(latest, alike.ready_us + distance[index(to)]);
    }
    return latest;
  }

  ConcurrentFlow flow_over(const PriceGrid& grid) const {
    const std::size_t periods = grid.size();
    const auto node = [&](std::size_t period, std::size_t place) {
      return static_cast<int>(period * num_places_ + place);
    };
    ConcurrentFlow flow{{static_cast<int>(periods * num_places_), {}}, {}, {}};
    std::vector<int> arc_of(topology_.num_links());
    for (std::size_t period = 0; period < periods; ++period) {
      for (std::size_t l = 0; l < topology_.num_links(); ++l) {
        const Link& link = topology_.links()[l];
        const std::size_t arrival = grid.period_later(period, link.latency_us);
        arc_of[l] = arrival == periods ? -1 : static_cast<int>(flow.graph.arcs.size());
        if (arrival < periods)
          flow.graph.arcs.push_back({node(period, tail_of_link_[l]), node(arrival, link.dst.index())});
      }
      for (const AlikeRows& alike : rows_.all()) {
        CapacityRow row{{}, alike.GBps * kBytesPerUsPerGBps * grid.length_us(period)};
        for (const LinkId l : alike.links) {
          if (arc_of[l.index()] >= 0) row.arcs.push_back(arc_of[l.index()]);
        }
        flow.rows.push_back(std::move(row));
      }
      for (const auto& [from, to, us] : waits_) {
        const std::size_t later = grid.period_later(period, us);
        if (later < periods) flow.graph.arcs.push_back({node(period, from), node(later, to)});
      }
      if (period + 1 == periods) break;
      for (std::size_t place = 0; place < num_places_; ++place)
        flow.graph.arcs.push_back({node(period, place), node(period + 1, place)});
    }
    for (const AlikeOrigins& alike : origins_) {
      CommodityBlock& block = flow.blocks.emplace_back();
      block.source = node(grid.period_at(alike.ready_us), alike.origin.index());
      for (const auto& [to, bytes] : alike.bytes_to)
        block.sinks.push_back({node(periods - 1, index(to)), bytes});
    }
    return flow;
  }

  /// So many as leave work for a flow.
  std::size_t most_periods() const {
    const double arcs = static_cast<double>((topology_.num_links() + num_places_) * origins_.size());
    return static_cast<std::size_t>(
        std::min(kMostWork / (kLeastPricings * arcs), static_cast<double>(kMostPeriods)));
  }

  /// Nothing where they take too much work. `decide`: they may be any that prove more, if there are some.
  std::optional<Prices> prices_at(const PriceGrid& grid, bool decide) {
    const ConcurrentFlow flow = flow_over(grid);
    const double work = static_cast<double>(flow.graph.arcs.size() * flow.blocks.size());
    const double pricings = (kMostWork - work_) / work;
    if (pricings < 0.9 * kLeastPricings || simplex_work_ >= kMostSimplexWork) return std::nullopt;
    ColumnOptions options;
    options.gap = kColumnsGap;
    options.enough = decide ? 1 : 0;
    options.max_iterations = static_cast<int>(std::min<double>(kMostMasters, pricings - options.warm_up));
    const auto work_of_iteration = static_cast<double>(flow.rows.size() + flow.blocks.size());
    const double iterations = std::ceil((kMostSimplexWork - simplex_work_) / work_of_iteration);
    options.limits = deadline_.left_of({.max_iterations = static_cast<std::int64_t>(iterations)});
    const ColumnSolution solution = solve_by_columns(flow, options, make_master_, *communicator_);
    work_ += work * static_cast<double>(static_cast<std::size_t>(options.warm_up) + solution.history.size());
    simplex_work_ += work_of_iteration * static_cast<double>(solution.simplex_iterations);
    return Prices{solution.row_price, solution.bound};
  }

  void keep(PricesCertificate prices) {
    if (prices.until_us <= proven_us_) return;
    try {
      sound_bound_of(topology_, demand_, prices);
    } catch (const Error&) {
      return;
    }
    proven_us_ = prices.until_us;
    best_ = LowerBound{proven_us_, std::move(prices)};
  }

  const Topology& topology_;
  const Demand& demand_;
  const MakeColumnMaster& make_master_;
  const Deadline& deadline_;
  std::vector<double> delays_us_;
  PricedRows rows_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<AlikeOrigins> origins_ = {};
  std::size_t num_places_ = 0;
  std::vector<std::size_t> tail_of_link_ = {};
  std::vector<std::tuple<std::size_t, std::size_t, double>> waits_ = {};  ///< from, to, us
  double proven_us_ = 0;
  std::optional<LowerBound> best_ = std::nullopt;
  double work_ = 0;
  double simplex_work_ = 0;
};

}  // namespace

std::optional<LowerBound> find_prices(const Topology& topology, const Demand& demand,
                                      const Symmetry& symmetry, const MakeColumnMaster& make_master,
                                      double least_us, const Deadline& deadline) {
  if (!demand.is_unicast() || topology.has_bandwidth_steps() || !make_master) return std::nullopt;
  return PricesSearch(topology, demand, symmetry, make_master, deadline).run(least_us);
}

}  // namespace rondo
