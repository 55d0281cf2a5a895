#include "rondo/core/knowledge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "kinds.hpp"
#include "origins.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

using certificates::Origins;
using certificates::refuse_certificate;
/// Times: 64 bits of mantissa, and rounded outwards besides.
using Wide = long double;

/// Of the bytes: a GPU that may have all but this may have all.
constexpr double kBytesTolerance = 1e-9;
/// More messages than these on one link count as any number.
constexpr std::size_t kMostMessages = 1024;

/// Bytes that are at some nodes at first, each from a time on.
struct Datum {
  double bytes = 0;
  std::vector<std::pair<NodeId, double>> holders;
};

/// The bytes that count, and how many of them each place can have at most at the end of each period. A place
/// is a GPU or a store-and-forward switch, by the number of its node, or behind them a set of nodes.
class Knowledge {
 public:
  Knowledge(const Topology& topology, const Demand& demand, const KnowledgeCertificate& certificate)
      : topology_(topology), certificate_(certificate), times_(certificate.times_us), origins_(topology) {
    check();
    count(demand);
    if (!(all_bytes_ > 0)) {
      refuse_certificate(fmt::format("GPU {} wants nothing of the sources named; that proves nothing",
                                     certificate.gpu.value));
    }
    make_places();
  }

  /// The first time at which the GPU may have all, or the last of the times.
  double until_us() {
    const std::size_t gpu = topology_.node_of(certificate_.gpu).index();
    for (std::size_t p = 0; p + 1 < times_.size(); ++p) {
      advance(p);
      if (!(most_[gpu][p] < all_bytes_ * (1 - kBytesTolerance))) return times_[p];
    }
    return times_.back();
  }

  double all_bytes() const { return all_bytes_; }
  std::size_t work() const { return work_; }

 private:
  struct Place {
    std::vector<std::pair<double, double>> at_first;  ///< ready time, ascending, and bytes up to then
    std::vector<std::size_t> entering;                ///< links
    std::vector<std::size_t> within;                  ///< places that contain it
    std::vector<std::size_t> fed_by;                  ///< places that contain all origins of those links
    Wide delay_us = 0;                                ///< at least, on those links
  };

  /// What messages that start on a link before a time have.
  struct Begun {
    double one = 0;       ///< the most that one has
    double together = 0;  ///< what all their origins had
  };

  void check() const {
    if (!certificate_.gpu.valid() || certificate_.gpu.index() >= topology_.num_gpus()) {
      refuse_certificate(fmt::format("GPU {} does not exist; GPUs are 0 to {}", certificate_.gpu.value,
                                     topology_.num_gpus() - 1));
    }
    check_ascending(certificate_.sources, topology_.num_gpus(), "sources");
    for (const std::vector<NodeId>& set : certificate_.sets)
      check_ascending(set, topology_.num_nodes(), "nodes of a set");
    const bool ascending = std::ranges::adjacent_find(times_, std::ranges::greater_equal{}) == times_.end() &&
                           std::ranges::all_of(times_, [](double t) { return std::isfinite(t); });
    if (times_.size() < 2 || times_.size() > kMostKnowledgeTimes || times_.front() != 0 || !ascending) {
      refuse_certificate(
          fmt::format("there have to be 2 to {} times, ascending from 0 us", kMostKnowledgeTimes));
    }
    if (certificate_.sets.size() > kMostKnowledgeSets)
      refuse_certificate(
          fmt::format("there are {} sets; {} are the most", certificate_.sets.size(), kMostKnowledgeSets));
  }

  template <class Id>
  static void check_ascending(const std::vector<Id>& ids, std::size_t end, const char* what) {
    const auto is_wrong = [&](Id id) { return !id.valid() || id.index() >= end; };
    if (ids.empty() || std::ranges::any_of(ids, is_wrong) ||
        std::ranges::adjacent_find(ids, std::ranges::greater_equal{}) != ids.end()) {
      refuse_certificate(fmt::format("{} have to ascend and to be of 0 to {}", what, end - 1));
    }
  }

  bool is_named(GpuId source) const { return std::ranges::binary_search(certificate_.sources, source); }

  /// What the GPU wants of the sources. The named sources of a sum have equal shares of its bytes, each the
  /// data of one.
  void count(const Demand& demand) {
    std::map<std::vector<std::pair<NodeId, double>>, double> bytes;
    const auto add = [&](const Contribution& part, const std::vector<GpuId>& holders, double some) {
      std::vector<std::pair<NodeId, double>> at;
      for (const GpuId g : holders)
        at.emplace_back(topology_.node_of(g), certificates::ready_of_holder(part, g));
      bytes[std::move(at)] += some;
      all_bytes_ += some;
    };
    for (const Contribution& part : demand.contributions()) {
      if (!std::ranges::binary_search(part.destinations, certificate_.gpu)) continue;
      if (!part.reduce) {
        if (is_named(part.origin)) add(part, certificates::holders_of(part, part.origin), part.bytes);
        continue;
      }
      std::vector<std::vector<GpuId>> homes;
      for (const GpuId source : part.sources) {
        if (!is_named(source)) continue;
        std::vector<GpuId> holders = certificates::holders_of(part, source);
        if (!holders.empty()) homes.push_back(std::move(holders));
      }
      for (const std::vector<GpuId>& holders : homes)
        add(part, holders, part.bytes / static_cast<double>(homes.size()));
    }
    for (const auto& [holders, some] : bytes) data_.push_back({some, holders});
  }

  std::size_t nodes() const { return topology_.num_nodes(); }
  const std::vector<NodeId>& set(std::size_t place) const { return certificate_.sets[place - nodes()]; }
  bool contains(std::size_t place, NodeId n) const {
    return place < nodes() ? place == n.index() : inside_[place - nodes()][n.index()] != 0;
  }

  void make_places() {
    for (const std::vector<NodeId>& nodes_of_set : certificate_.sets) {
      order_.push_back(nodes() + inside_.size());
      std::vector<char>& flags = inside_.emplace_back(nodes(), 0);
      for (const NodeId n : nodes_of_set) flags[n.index()] = 1;
    }
    std::ranges::stable_sort(order_, std::ranges::greater{},
                             [&](std::size_t place) { return set(place).size(); });
    for (std::size_t l = 0; l < topology_.num_links(); ++l) feeding_.push_back(sets_with_origins(LinkId(l)));
    places_.resize(nodes() + inside_.size());
    const std::vector<std::size_t> sets = order_;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      places_[sets[i]] = made_place(sets[i]);
      for (std::size_t larger = 0; larger < i; ++larger) {
        if (std::ranges::all_of(set(sets[i]), [&](NodeId n) { return contains(sets[larger], n); }))
          places_[sets[i]].within.push_back(sets[larger]);
      }
    }
    for (std::size_t n = 0; n < nodes(); ++n) {
      if (origins_.is_passed(NodeId(n))) continue;
      order_.push_back(n);
      places_[n] = made_place(n);
      std::ranges::copy_if(sets, std::back_inserter(places_[n].within),
                           [&](std::size_t place) { return contains(place, NodeId(n)); });
    }
    most_.assign(places_.size(), std::vector<double>(times_.size() - 1, 0));
    carried_.assign(topology_.num_links(), 0);
    begun_.resize(topology_.num_links());
  }

  std::vector<std::size_t> sets_with_origins(LinkId l) const {
    std::vector<std::size_t> with;
    for (std::size_t place = nodes(); place < nodes() + inside_.size(); ++place) {
      const bool all = std::ranges::all_of(origins_.of(l), [&](const Origins::Group& group) {
        return std::ranges::all_of(group.nodes, [&](NodeId n) { return contains(place, n); });
      });
      if (all) with.push_back(place);
    }
    return with;
  }

  Place made_place(std::size_t index) const {
    Place place;
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      const Link& link = topology_.link(LinkId(l));
      if (!contains(index, link.dst) || contains(index, link.src) || origins_.of(LinkId(l)).empty()) continue;
      const Wide delay_us = Wide{link.latency_us} + origins_.message_us(LinkId(l));
      if (place.entering.empty()) {
        place.fed_by = feeding_[l];
        place.delay_us = delay_us;
      }
      std::erase_if(place.fed_by, [&](std::size_t p) { return !std::ranges::binary_search(feeding_[l], p); });
      place.delay_us = std::min(place.delay_us, delay_us);
      place.entering.push_back(l);
    }
    std::map<double, double> by_time;
    for (const Datum& datum : data_) {
      double ready_us = std::numeric_limits<double>::infinity();
      for (const auto& [node, us] : datum.holders) {
        if (contains(index, node)) ready_us = std::min(ready_us, us);
      }
      if (std::isfinite(ready_us)) by_time[ready_us] += datum.bytes;
    }
    double sum = 0;
    for (const auto& [us, some] : by_time) place.at_first.emplace_back(us, sum += some);
    return place;
  }

  /// The last period that begins before `us`, or -1.
  std::ptrdiff_t period_before(Wide us) const {
    return std::ranges::lower_bound(times_, us, {}, [](double t) { return Wide{t}; }) - times_.begin() - 1;
  }

  /// times_[p + 1] - delay, outwards.
  Wide latest_start(std::size_t p, Wide delay_us) const {
    const Wide end = times_[p + 1];
    return (end - delay_us) + 4 * std::numeric_limits<Wide>::epsilon() * (end + delay_us);
  }

  void advance(std::size_t p) {
    for (std::size_t l = 0; l < begun_.size(); ++l)
      begun_[l].push_back(begun_before(LinkId(l), times_[p], p));
    for (std::size_t l = 0; l < carried_.size(); ++l) carried_[l] = carried_by(LinkId(l), p);
    for (const std::size_t index : order_) {
      const Place& place = places_[index];
      double at_first = 0;
      for (const auto& [us, sum] : place.at_first) {
        if (us < times_[p + 1]) at_first = sum;
      }
      double entered = 0;
      for (const std::size_t l : place.entering) entered += carried_[l];
      if (!place.fed_by.empty()) {
        const std::ptrdiff_t period = period_before(latest_start(p, place.delay_us));
        for (const std::size_t set : place.fed_by) entered = std::min(entered, known(set, period, p));
      }
      double most = std::min(all_bytes_, at_first + entered);
      for (const std::size_t set : place.within) most = std::min(most, most_[set][p]);
      most_[index][p] = most;
    }
  }

  /// What a place has at most before the end of `period`, of those before `now`.
  double known(std::size_t place, std::ptrdiff_t period, std::size_t now) const {
    if (period < 0) return 0;
    return static_cast<std::size_t>(period) < now ? most_[place][static_cast<std::size_t>(period)]
                                                  : all_bytes_;
  }

  /// The most that one message has which starts on the link before `us`.
  double one_message(LinkId l, Wide us, std::size_t now) const {
    double most = 0;
    for (const Origins::Group& group : origins_.of(l)) {
      const std::ptrdiff_t period = period_before(us - group.latency_us);
      for (const NodeId n : group.nodes) {
        const double bytes = known(n.index(), period, now);
        most = origins_.adds(l) ? most + bytes : std::max(most, bytes);
      }
    }
    return std::min(most, all_bytes_);
  }

  bool is_lone(LinkId l) const {
    const auto& groups = origins_.of(l);
    return groups.size() == 1 && groups.front().nodes.size() == 1;
  }

  Begun begun_before(LinkId l, Wide us, std::size_t now) const {
    Begun begun{one_message(l, us, now), all_bytes_};
    if (is_lone(l)) begun.together = begun.one;
    for (const std::size_t set : feeding_[l.index()])
      begun.together = std::min(begun.together, known(set, period_before(us), now));
    return begun;
  }

  /// Bytes that messages bring over the link before the end of period p, those that start from a time on by
  /// the bandwidth, the others by what their origins have: the least over such times.
  double carried_by(LinkId l, std::size_t p) {
    if (origins_.of(l).empty()) return 0;
    const Link& link = topology_.link(l);
    const Wide last = latest_start(p, Wide{link.latency_us} + origins_.message_us(l));
    if (!(last > 0)) return 0;
    double peak_GBps = link.bandwidth_GBps;
    for (const BandwidthStep& step : link.bandwidth_steps) peak_GBps = std::max(peak_GBps, step.GBps);
    const Wide bytes_per_us = Wide{peak_GBps} * kBytesPerUsPerGBps;
    const Messages messages(*this, l, p, last);
    work_ += messages.number();
    double least = messages.before(last, begun_before(l, last, p));
    for (std::ptrdiff_t q = std::min(period_before(last), static_cast<std::ptrdiff_t>(p)); q >= 0; --q) {
      const auto at = static_cast<std::size_t>(q);
      const auto after = static_cast<double>(bytes_per_us * (last - times_[at]));
      if (after >= least) break;
      ++work_;
      least = std::min(least, after + messages.before(times_[at], begun_[l.index()][at]));
    }
    return least;
  }

  /// Messages over a link that arrive before the end of a period, one after another, the last first.
  class Messages {
   public:
    Messages(const Knowledge& all, LinkId l, std::size_t p, Wide last) {
      if (all.is_lone(l)) return;
      const Wide apart_us = all.topology_.link(l).message_us;
      while (apart_us > 0 && starts_.size() < kMostMessages) {
        const Wide us = last - static_cast<Wide>(starts_.size()) * apart_us;
        if (!(us > 0)) break;
        starts_.push_back(us);
      }
      rest_.assign(starts_.size() + 1, 0);
      if (starts_.size() == kMostMessages || !(apart_us > 0)) rest_.back() = all.all_bytes_;
      for (std::size_t i = starts_.size(); i-- > 0;)
        rest_[i] = std::min(all.all_bytes_, rest_[i + 1] + all.one_message(l, starts_[i], p));
    }

    std::size_t number() const { return 1 + starts_.size(); }

    /// What those that start before `us` have at most.
    double before(Wide us, const Begun& begun) const {
      if (rest_.empty() || begun.one == 0) return std::min(begun.one, begun.together);
      const auto later = static_cast<std::size_t>(
          std::ranges::partition_point(starts_, [&](Wide start) { return start >= us; }) - starts_.begin());
      return std::min(begun.together, static_cast<double>(later) * begun.one + rest_[later]);
    }

   private:
    std::vector<Wide> starts_ = {};  ///< at the latest, descending
    std::vector<double> rest_ = {};  ///< from each of them on; empty: a link of one origin
  };

  const Topology& topology_;
  const KnowledgeCertificate& certificate_;
  const std::vector<double>& times_;
  Origins origins_;
  std::vector<Datum> data_;
  double all_bytes_ = 0;
  std::vector<std::vector<char>> inside_;          ///< per set one flag a node
  std::vector<Place> places_;                      ///< by node, then sets
  std::vector<std::size_t> order_;                 ///< of places: sets, the largest first, then nodes
  std::vector<std::vector<std::size_t>> feeding_;  ///< per link: sets that contain all its origins
  std::vector<double> carried_;                    ///< per link, by the end of the period looked at
  std::vector<std::vector<double>> most_;          ///< per place and period
  std::vector<std::vector<Begun>> begun_;          ///< per link, before each time so far
  std::size_t work_ = 0;
};

}  // namespace

double known_until_us(const Topology& topology, const Demand& demand, const KnowledgeCertificate& certificate,
                      std::size_t& work) {
  Knowledge knowledge(topology, demand, certificate);
  const double us = knowledge.until_us();
  work += knowledge.work();
  return us;
}

namespace certificates {

double bound(const Topology& topology, const Demand& demand, const KnowledgeCertificate& certificate) {
  Knowledge knowledge(topology, demand, certificate);
  const double until_us = knowledge.until_us();
  if (until_us < certificate.times_us.back()) {
    refuse_certificate(
        fmt::format("GPU {} may have all {} bytes that count soon after {} us; the certificate "
                    "needs it to lack some until {} us",
                    certificate.gpu.value, knowledge.all_bytes(), until_us, certificate.times_us.back()));
  }
  return until_us;
}

}  // namespace certificates
}  // namespace rondo
