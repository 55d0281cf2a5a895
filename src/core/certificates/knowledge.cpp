#include "rondo/core/knowledge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "carried.hpp"
#include "kinds.hpp"
#include "knowledge_places.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

using certificates::Carried;
using certificates::KnowledgePlaces;
using certificates::Origins;
using certificates::Started;
using certificates::Wide;

/// Of the bytes: a GPU that may have all but this may have all.
constexpr double kBytesTolerance = 1e-9;
/// More messages than these on one link count as any number.
constexpr std::size_t kMostMessages = 1024;

/// How many of the bytes that count each place can have at most at the end of each period.
class Knowledge {
 public:
  Knowledge(const Topology& topology, const Demand& demand, const KnowledgeCertificate& certificate)
      : topology_(topology),
        places_(topology, demand, certificate),
        origins_(places_.origins()),
        times_(certificate.times_us),
        all_bytes_(places_.all_bytes()),
        backwards_(certificate.backwards),
        gpu_(topology.node_of(certificate.gpu).index()) {
    most_.assign(places_.number(), std::vector<double>(times_.size() - 1, 0));
    carried_.assign(topology.num_links(), 0);
    begun_.resize(topology.num_links());
    std::map<std::tuple<NodeId, double, double, double>, std::size_t> first;
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      const Link& link = topology.link(LinkId(l));
      like_.push_back(
          first.try_emplace({link.src, peak_GBps(link), link.latency_us, link.message_us}, l).first->second);
    }
  }

  /// The first time at which the GPU may have all, or the last of the times.
  double until_us() {
    for (std::size_t p = 0; p + 1 < times_.size(); ++p) {
      advance(p);
      if (!(most_[gpu_][p] < all_bytes_ * (1 - kBytesTolerance))) return times_[p];
    }
    return times_.back();
  }

  double all_bytes() const { return all_bytes_; }
  std::size_t work() const { return work_ + carried_until_.work(); }

 private:
  /// What messages that start on a link before a time have.
  struct Begun {
    double one = 0;       ///< the most that one has
    double together = 0;  ///< what all of them have, or their origins had
  };

  static double peak_GBps(const Link& link) {
    double GBps = link.bandwidth_GBps;
    for (const BandwidthStep& step : link.bandwidth_steps) GBps = std::max(GBps, step.GBps);
    return GBps;
  }

  /// The last period that begins before `us`, or -1.
  std::ptrdiff_t period_before(Wide us) const {
    return std::ranges::lower_bound(times_, us, {}, [](double t) { return Wide{t}; }) - times_.begin() - 1;
  }

  /// us - delay, outwards.
  static Wide earlier(Wide us, Wide delay_us) {
    return delay_us > 0 ? (us - delay_us) + 4 * std::numeric_limits<Wide>::epsilon() * (us + delay_us) : us;
  }

  void advance(std::size_t p) {
    for (std::size_t l = 0; l < carried_.size(); ++l) {
      if (origins_.of(LinkId(l)).empty()) continue;
      if (like_[l] == l) begun_[l].push_back(begun_before(LinkId(l), times_[p], p));
      carried_[l] = like_[l] == l ? carried_by(LinkId(l), p) : carried_[like_[l]];
    }
    for (const std::size_t index : places_.order()) {
      const KnowledgePlaces::Place& place = places_[index];
      double at_first = 0;
      for (const auto& [us, sum] : place.at_first) {
        if (us < times_[p + 1]) at_first = sum;
      }
      double entered = 0;
      for (const std::size_t l : place.entering) entered += carried_[l];
      if (!place.fed_by.empty()) {
        const std::ptrdiff_t period = period_before(earlier(times_[p + 1], place.delay_us));
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
      const std::ptrdiff_t period = period_before(earlier(us, group.latency_us));
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

  Begun begun_before(LinkId l, Wide us, std::size_t now) {
    Begun begun{one_message(l, us, now), all_bytes_};
    if (begun.one == 0) return {};
    if (is_lone(l)) {
      begun.together = begun.one;
    } else if (!backwards_) {
      const Messages messages(*this, l, now, us);
      begun.together = messages.together();
      work_ += messages.number();
    }
    for (const std::size_t set : places_.feeding(l))
      begun.together = std::min(begun.together, known(set, period_before(us), now));
    return begun;
  }

  /// Bytes that messages bring over the link before the end of period p.
  double carried_by(LinkId l, std::size_t p) {
    const Link& link = topology_.link(l);
    const Wide message_us = origins_.message_us(l);
    const Wide last = earlier(times_[p + 1], link.latency_us + message_us);
    if (!(last > 0)) return 0;
    // Forwards they start one after another, and what they have is known; backwards they arrive so.
    std::optional<Messages> arriving;
    if (backwards_ && !is_lone(l)) {
      arriving.emplace(*this, l, p, last);
      work_ += arriving->number();
    }
    const auto have_before = [&](Wide us, const Begun& begun) {
      return arriving ? arriving->before(us, begun) : begun.together;
    };
    starts_.clear();
    // Rounded outwards, it may lie behind the period.
    const auto periods =
        static_cast<std::size_t>(std::min(period_before(last), static_cast<std::ptrdiff_t>(p)) + 1);
    for (std::size_t q = 0; q < periods; ++q)
      starts_.push_back({times_[q], have_before(times_[q], begun_[l.index()][q])});
    starts_.push_back({last, have_before(last, begun_before(l, last, p))});
    work_ += starts_.size();
    // What a message costs a link whose rates change is not told.
    return carried_until_.most(starts_, Wide{peak_GBps(link)} * kBytesPerUsPerGBps,
                               topology_.has_bandwidth_steps() ? 0 : message_us,
                               backwards_ ? 0 : link.message_us);
  }

  /// Messages over a link that start before a time, one after another, the last first; or that start before
  /// those times at the latest.
  class Messages {
   public:
    Messages(const Knowledge& all, LinkId l, std::size_t p, Wide last) {
      const Wide apart_us = all.topology_.link(l).message_us;
      while (apart_us > 0 && starts_.size() < kMostMessages) {
        const Wide us = earlier(last, static_cast<Wide>(starts_.size()) * apart_us);
        if (!(us > 0)) break;
        starts_.push_back(us);
      }
      rest_.assign(starts_.size() + 1, 0);
      if (starts_.size() == kMostMessages || !(apart_us > 0)) rest_.back() = all.all_bytes_;
      for (std::size_t i = starts_.size(); i-- > 0;)
        rest_[i] = std::min(all.all_bytes_, rest_[i + 1] + all.one_message(l, starts_[i], p));
    }

    std::size_t number() const { return starts_.size(); }
    double together() const { return rest_.front(); }

    /// Of messages that may start earlier, what those that start before `us` have at most.
    double before(Wide us, const Begun& begun) const {
      if (begun.one == 0) return 0;
      const auto later = static_cast<std::size_t>(
          std::ranges::partition_point(starts_, [&](Wide start) { return start >= us; }) - starts_.begin());
      return std::min(begun.together, static_cast<double>(later) * begun.one + rest_[later]);
    }

   private:
    std::vector<Wide> starts_ = {};  ///< at the latest, descending
    std::vector<double> rest_ = {};  ///< from each of them on
  };

  const Topology& topology_;
  KnowledgePlaces places_;
  const Origins& origins_;
  const std::vector<double>& times_;
  double all_bytes_;
  bool backwards_;                         ///< whether time is counted back
  std::size_t gpu_;                        ///< its node
  std::vector<std::size_t> like_ = {};     ///< per link: the first that carries as much
  std::vector<double> carried_ = {};       ///< per link, by the end of the period looked at
  std::vector<std::vector<double>> most_;  ///< per place and period
  std::vector<std::vector<Begun>> begun_;  ///< per link, before each time so far
  Carried carried_until_ = {};
  std::vector<Started> starts_ = {};
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
