#include "rondo/bounds/message_prices.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "both_directions.hpp"
#include "message_columns.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/graph/digraph.hpp"

namespace rondo {
namespace {

/// Of the best bound: where no message costs as much, a few of them more gain next to nothing.
constexpr double kLeastShareOfCost = 0.005;
/// Periods of a first look at each GPU, and of the prices.
constexpr std::size_t kFirstPeriods = 12;
constexpr std::size_t kMostMessagePeriods = 24;
/// Of the GPUs the best ones of the first look are priced in many periods.
constexpr std::size_t kMostPriced = 2;
/// Pairs of times on ways that are looked at for all prices tried once: roughly, then exactly; for what
/// prices prove, and for the check of it.
constexpr double kRoughWork = 6e5;
constexpr double kExactWork = 3e6;
constexpr double kProofWork = 3e7;
constexpr double kCheckWork = 5e8;
constexpr int kMostPartsTried = 32;
/// The most that prices tried once may take, and all together; about 2 s.
constexpr double kMostOncePriced = 2e7;
constexpr double kMostMessagesPriced = 2e9;
constexpr double kShareOfLooks = 0.3;  ///< of these, for first looks
/// Of the best bound, how near a rough end has to be; and what links earn less, for rounding.
constexpr double kRoughShare = 0.95;
constexpr double kLead = 2e-8;
/// Ends for which prices are made, roughly and exactly; how near to the best these are, and masters for them.
constexpr int kMostEndsPriced = 4;
constexpr double kRoughGap = 2e-2;
constexpr double kExactGap = 5e-3;
constexpr int kPricesByWeights = 20;
constexpr int kMostMessageMasters = 150;
/// Of the end: to which it is found what prices prove, and by how much it is moved at first.
constexpr double kNearEnd = 2e-4;
constexpr double kFirstMove = 0.01;
constexpr int kMostMoves = 24;
/// Of the bytes of a sum, which go over several links at once: what of them counts for how far a source is.
constexpr double kShareOfBytes = 0.25;
/// By so much the first end is later than what is proven.
constexpr double kFirstLead = 0.05;

class MessagePricesSearch {
 public:
  MessagePricesSearch(const Topology& topology, const Demand& demand, const Symmetry& symmetry,
                      const MakeColumnMaster& make_master, double least_us, const Deadline& deadline)
      : topology_(topology),
        demand_(demand),
        symmetry_(symmetry),
        make_master_(make_master),
        deadline_(deadline),
        proven_us_(least_us) {}

  std::optional<LowerBound> run() {
    const double first_us = proven_us_ * (1 + kFirstLead);
    if (demand_.is_unicast()) {
      improve(problem_of_all(), first_us);
      return std::move(best_);
    }
    std::vector<std::pair<double, GpuId>> candidates;
    for (const GpuId g : destinations()) {
      if (is_over() || work_ > kShareOfLooks * kMostMessagesPriced) break;
      const MessageProblem problem = problem_of(g);
      const Pricing roughly = pricing(problem, kFirstPeriods, kRoughWork, kRoughGap);
      if (problem.wanted.empty() || !roughly.is_possible) continue;
      candidates.emplace_back(-priced(problem, first_us, {}, roughly).payments, g);
    }
    std::ranges::stable_sort(candidates);
    if (candidates.size() > kMostPriced) candidates.resize(kMostPriced);
    for (const auto& [payments, gpu] : candidates) improve(problem_of(gpu), first_us);
    return std::move(best_);
  }

 private:
  struct Pricing {
    MessageColumnOptions how = {};
    double work = 0;  ///< of prices tried once
    bool is_possible = false;
  };

  bool is_over() const { return work_ > kMostMessagesPriced || deadline_.is_over(); }

  /// In as many parts as the work allows.
  Pricing pricing(const MessageProblem& problem, std::size_t periods, double work, double gap) const {
    Pricing pricing{{periods, 1, gap, kPricesByWeights, kMostMessageMasters}};
    const double least = static_cast<double>(num_destinations(problem)) * work_of_one(problem, periods);
    pricing.how.parts = std::clamp(static_cast<int>(std::sqrt(work / least)), 1, kMostPartsTried);
    pricing.work = least * std::pow(pricing.how.parts, 2);
    pricing.is_possible = pricing.work <= kMostOncePriced;
    return pricing;
  }

  /// Of one destination, where periods are not divided.
  double work_of_one(const MessageProblem& problem, std::size_t periods) const {
    const MessagePrices prices{std::vector<double>(periods * problem.rows.size(), 0.0)};
    const auto certificate = message_certificate(problem, prices, periods, 1, proven_us_);
    return CheapestMessages(topology_, certificate).work();
  }

  MessagePrices priced(const MessageProblem& problem, double us, const MessagePrices& start,
                       const Pricing& pricing) {
    MessageColumnOptions how = pricing.how;
    const double most = (kMostMessagesPriced - work_) / pricing.work - how.warm_up;
    how.max_masters = std::clamp(static_cast<int>(most), 1, how.max_masters);
    MessagePrices prices = price_messages(problem, us, start, how, make_master_, deadline_);
    work_ += pricing.work * prices.times_priced;
    return prices;
  }

  /// One an orbit.
  std::vector<GpuId> destinations() const {
    std::vector<char> wants(topology_.num_gpus(), 0);
    for (const Contribution& part : demand_.contributions()) {
      for (const GpuId g : part.destinations) wants[g.index()] = 1;
    }
    return representatives(topology_, symmetry_, wants);
  }

  /// Of destinations that are alike the bytes of the first stand for those of all.
  MessageProblem problem_of_all() const {
    std::vector<WantedBytes> wanted = wanted_bytes(topology_, demand_, {});
    keep_first_ones(wanted, symmetry_, [](const WantedBytes& some) { return some.destination; });
    return {topology_, {}, std::move(wanted), PricedRows(topology_, symmetry_)};
  }

  /// The same of sources, by the symmetry that leaves the GPU where it is. Of a sum the farthest source
  /// counts.
  MessageProblem problem_of(GpuId g) const {
    std::vector<WantedBytes> wanted = wanted_bytes(topology_, demand_, g);
    if (wanted.empty()) return {topology_, g, {}, PricedRows(topology_, trivial_symmetry(topology_))};
    std::vector<Contribution> parts;
    for (WantedBytes& some : wanted) {
      if (some.sources.size() > 1) some.sources = {farthest(some)};
      const auto& [source, from_us] = some.sources.front();
      parts.push_back({.origin = source, .bytes = some.bytes, .destinations = {g}, .ready_us = from_us});
    }
    const Demand alone(Collective::custom, demand_.size_bytes(), demand_.num_gpus(), std::move(parts), 1);
    const Symmetry symmetry = find_symmetry(topology_, alone);
    keep_first_ones(wanted, symmetry, [](const WantedBytes& some) { return some.sources.front().gpu; });
    return {topology_, g, std::move(wanted), PricedRows(topology_, symmetry)};
  }

  WantedBytes::Source farthest(const WantedBytes& sum) const {
    std::vector<double> length_us;
    for (const Link& link : topology_.links()) {
      length_us.push_back(link.latency_us + link.message_us +
                          kShareOfBytes * transmission_us(sum.bytes, link.bandwidth_GBps));
    }
    const std::vector<double> distance_us =
        shortest_paths(reversed(topology_.graph()), length_us, topology_.node_of(sum.destination).value)
            .distance;
    return *std::ranges::max_element(sum.sources, {}, [&](const WantedBytes::Source& source) {
      return source.from_us + distance_us[topology_.node_of(source.gpu).index()];
    });
  }

  template <class GpuOf>
  void keep_first_ones(std::vector<WantedBytes>& wanted, const Symmetry& symmetry,
                       const GpuOf& gpu_of) const {
    const auto orbit_of = [&](const WantedBytes& some) {
      return symmetry.node_orbit[topology_.node_of(gpu_of(some)).index()];
    };
    std::map<int, std::set<GpuId>> alike;
    for (const WantedBytes& some : wanted) alike[orbit_of(some)].insert(gpu_of(some));
    std::erase_if(wanted,
                  [&](const WantedBytes& some) { return gpu_of(some) != *alike[orbit_of(some)].begin(); });
    for (WantedBytes& some : wanted) some.bytes *= static_cast<double>(alike[orbit_of(some)].size());
  }

  static std::size_t num_destinations(const MessageProblem& problem) {
    std::set<GpuId> destinations;
    for (const WantedBytes& some : problem.wanted) destinations.insert(some.destination);
    return destinations.size();
  }

  /// Moves the end to where prices can just be made to prove it, roughly, then exactly if that is later than
  /// for the GPUs before.
  void improve(const MessageProblem& problem, double us) {
    MessagePrices prices;
    double slope = 0;  // of the share of the bytes that can be there by an end
    double last_us = 0;
    double last_share = 0;
    const auto move_end = [&] {
      const double share = 1 / prices.payments;
      if (last_us > 0 && last_us != us) slope = (share - last_share) / (us - last_us);
      last_us = us;
      last_share = share;
      us += (1 - share) / std::max(slope, share / us);
    };
    for (const bool exactly : {false, true}) {
      const Pricing how = pricing(problem, kMostMessagePeriods, exactly ? kExactWork : kRoughWork,
                                  exactly ? kExactGap : kRoughGap);
      if (!how.is_possible || us < kRoughShare * proven_us_ || (exactly && us < rough_us_)) return;
      if (exactly) rough_us_ = us;
      last_us = 0;
      for (int end = 0; end < kMostEndsPriced && !is_over(); ++end) {
        prices = priced(problem, us, prices, how);
        for (int move = 0; prices.of_row.empty() && move < kMostMoves; ++move)
          prices = priced(problem, us *= 1 + kFirstLead, {}, how);
        if (prices.of_row.empty()) return;
        if (exactly) prove(problem, us, prices);
        move_end();
        if (std::abs(us - last_us) <= how.how.gap * us) break;
      }
    }
  }

  /// How far the prices, with periods stretched, prove an end.
  void prove(const MessageProblem& problem, double us, const MessagePrices& prices) {
    const double all = demand_.is_unicast() ? static_cast<double>(topology_.num_gpus()) : 1;
    const double share_of_all = static_cast<double>(num_destinations(problem)) / all;
    const MessageColumnOptions how =
        pricing(problem, kMostMessagePeriods, std::min(kProofWork, kCheckWork * share_of_all), 0).how;
    const auto certificate_at = [&](double end_us) {
      return message_certificate(problem, prices, how.periods, how.parts, end_us);
    };
    const auto holds = [&](double end_us) {
      const MessagePricesCertificate certificate = certificate_at(end_us);
      CheapestMessages cheapest(topology_, certificate);
      return cheapest.payments(problem.wanted) * (1 - kLead) > cheapest.earned();
    };
    double low_us = proven_us_;
    double high_us = us;
    double move = kFirstMove;
    for (int i = 0; i < kMostMoves && holds(high_us); ++i, move *= 2) {
      low_us = high_us;
      high_us *= 1 + move;
    }
    if (low_us == proven_us_ && (high_us < low_us || !holds(low_us * (1 + kNearEnd)))) return;
    for (int i = 0; i < kMostMoves && high_us - low_us > kNearEnd * high_us; ++i) {
      const double middle_us = 0.5 * (low_us + high_us);
      (holds(middle_us) ? low_us : high_us) = middle_us;
    }
    if (low_us > proven_us_) keep(certificate_at(low_us));
  }

  void keep(MessagePricesCertificate certificate) {
    const double us = certificate.prices.until_us;
    try {
      sound_bound_of(topology_, demand_, certificate);
    } catch (const Error&) {
      return;
    }
    proven_us_ = us;
    best_ = LowerBound{us, std::move(certificate)};
  }

  const Topology& topology_;
  const Demand& demand_;
  const Symmetry& symmetry_;
  const MakeColumnMaster& make_master_;
  const Deadline& deadline_;
  double proven_us_;
  double rough_us_ = 0;  ///< the latest rough end
  double work_ = 0;
  std::optional<LowerBound> best_ = std::nullopt;
};

bool can_price_messages(const Topology& topology) {
  return topology.has_message_costs() && !topology.has_bandwidth_steps() &&
         std::ranges::none_of(topology.nodes(), [](const Node& node) { return node.stores(); });
}

}  // namespace

std::optional<LowerBound> find_message_prices(const Topology& topology, const Demand& demand,
                                              const Symmetry& symmetry, const MakeColumnMaster& make_master,
                                              double least_us, const Deadline& deadline) {
  double message_us = 0;
  for (const Link& link : topology.links()) message_us = std::max(message_us, link.message_us);
  if (!can_price_messages(topology) || message_us < kLeastShareOfCost * least_us || !make_master)
    return std::nullopt;
  try {
    return MessagePricesSearch(topology, demand, symmetry, make_master, least_us, deadline).run();
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_data) throw;
    return std::nullopt;  // more ways of messages than can be checked
  }
}

}  // namespace rondo
