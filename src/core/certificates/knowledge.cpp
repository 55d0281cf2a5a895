#include "rondo/core/knowledge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "alike_places.hpp"
#include "carried.hpp"
#include "kinds.hpp"
#include "knowledge_places.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

using certificates::AlikePlaces;
using certificates::Carried;
using certificates::KnowledgePlaces;
using certificates::Origins;
using certificates::Started;
using certificates::Tightest;
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
        gpu_(topology.node_of(certificate.gpu).index()),
        alike_(topology, places_) {
    most_.resize(places_.number());
    sources_.resize(topology.num_nodes());
    links_.resize(topology.num_links());
    for (std::size_t l = 0; l < topology.num_links(); ++l) {
      if (!origins_.of(LinkId(l)).empty() && alike_.first_link(l) == l) set_up(LinkId(l));
    }
    for (const std::size_t place : places_.order()) {
      if (alike_.first_place(place) != place) continue;
      order_.push_back(place);
      most_[place].assign(times_.size() - 1, 0);
    }
    gpu_ = alike_.first_place(gpu_);
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

  /// Origins of a link, one of those that are alike.
  struct Source {
    std::size_t place;
    double number = 0;  ///< of those like it
  };
  struct Sources {
    Wide latency_us;
    bool adds;  ///< whether one message may have what several sources had
    std::vector<Source> places = {};
    std::vector<double> bytes = {};  ///< per period so far: of a message from there, at most
  };

  /// The first of those that are alike.
  struct FirstLink {
    std::vector<Begun> begun = {};  ///< before each time so far
    Tightest tightest = {};
    double carried = 0;  ///< by the end of the period looked at
  };

  void set_up(LinkId l) {
    first_links_.push_back(l);
    std::vector<Sources>& all = sources_[topology_.link(l).src.index()];
    if (!all.empty()) return;
    for (const Origins::Group& group : origins_.of(l)) {
      Sources& sources = all.emplace_back(Sources{group.latency_us, origins_.adds(l)});
      for (const NodeId n : group.nodes) {
        const std::size_t place = alike_.first_place(n.index());
        auto known = std::ranges::find(sources.places, place, &Source::place);
        if (known == sources.places.end()) known = sources.places.insert(known, Source{place});
        ++known->number;
      }
    }
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
    for (const LinkId l : first_links_) {
      FirstLink& first = links_[l.index()];
      first.begun.push_back(begun_before(l, times_[p], p));
      first.carried = carried_by(l, p);
    }
    for (const std::size_t index : order_) {
      const KnowledgePlaces::Place& place = places_[index];
      double at_first = 0;
      for (const auto& [us, sum] : place.at_first) {
        if (us < times_[p + 1]) at_first = sum;
      }
      double entered = 0;
      for (const std::size_t l : place.entering) entered += links_[alike_.first_link(l)].carried;
      if (!place.fed_by.empty()) {
        const std::ptrdiff_t period = period_before(earlier(times_[p + 1], place.delay_us));
        for (const std::size_t set : place.fed_by) entered = std::min(entered, known(most_[set], period, p));
      }
      double most = std::min(all_bytes_, at_first + entered);
      for (const std::size_t set : place.within) most = std::min(most, most_[set][p]);
      most_[index][p] = most;
    }
    for (std::vector<Sources>& of_node : sources_) {
      for (Sources& sources : of_node) {
        double bytes = 0;
        for (const Source& source : sources.places) {
          const double some = most_[source.place][p];
          bytes = sources.adds ? bytes + source.number * some : std::max(bytes, some);
        }
        sources.bytes.push_back(bytes);
      }
    }
  }

  /// What is known at most before the end of `period`, of those before `now`, of which `bytes` tell it.
  double known(const std::vector<double>& bytes, std::ptrdiff_t period, std::size_t now) const {
    if (period < 0) return 0;
    return static_cast<std::size_t>(period) < now ? bytes[static_cast<std::size_t>(period)] : all_bytes_;
  }

  /// The most that one message has which starts on the link before each of `starts`, which descend.
  std::vector<double> each_message(LinkId l, std::span<const Wide> starts, std::size_t now) const {
    std::vector<double> most(starts.size(), 0);
    for (const Sources& sources : sources_[topology_.link(l).src.index()]) {
      auto period = std::ssize(times_) - 1;
      for (std::size_t i = 0; i < starts.size(); ++i) {
        const Wide us = earlier(starts[i], sources.latency_us);
        if (i == 0) period = period_before(us);
        while (period >= 0 && times_[static_cast<std::size_t>(period)] >= us) --period;
        const double bytes = known(sources.bytes, period, now);
        most[i] = std::min(all_bytes_, sources.adds ? most[i] + bytes : std::max(most[i], bytes));
      }
    }
    return most;
  }

  bool is_lone(LinkId l) const {
    const auto& groups = origins_.of(l);
    return groups.size() == 1 && groups.front().nodes.size() == 1;
  }

  Begun begun_before(LinkId l, Wide us, std::size_t now) {
    Begun begun{each_message(l, {&us, 1}, now).front(), all_bytes_};
    if (begun.one == 0) return {};
    if (is_lone(l)) {
      begun.together = begun.one;
    } else if (!backwards_) {
      const Messages messages(*this, l, now, us);
      begun.together = messages.together();
      work_ += messages.number();
    }
    for (const std::size_t set : places_.feeding(l))
      begun.together = std::min(begun.together, known(most_[set], period_before(us), now));
    return begun;
  }

  /// Bytes that messages bring over the link before the end of period p.
  double carried_by(LinkId l, std::size_t p) {
    const Link& link = topology_.link(l);
    FirstLink& first = links_[l.index()];
    const Wide message_us = origins_.message_us(l);
    const Wide last = earlier(times_[p + 1], link.latency_us + message_us);
    if (!(last > 0)) return 0;
    const Begun begun_at_last = begun_before(l, last, p);
    if (begun_at_last.one == 0) return 0;
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
      starts_.push_back({times_[q], have_before(times_[q], first.begun[q])});
    starts_.push_back({last, have_before(last, begun_at_last)});
    work_ += starts_.size();
    // What a message costs a link whose rates change is not told.
    return carried_until_.most(starts_, Wide{greatest_GBps(link)} * kBytesPerUsPerGBps,
                               topology_.has_bandwidth_steps() ? 0 : message_us,
                               backwards_ ? 0 : link.message_us, first.tightest);
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
      const std::vector<double> most = all.each_message(l, starts_, p);
      for (std::size_t i = starts_.size(); i-- > 0;)
        rest_[i] = std::min(all.all_bytes_, rest_[i + 1] + most[i]);
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
  bool backwards_;   ///< whether time is counted back
  std::size_t gpu_;  ///< the first node like it
  AlikePlaces alike_;
  std::vector<std::vector<Sources>> sources_ = {};  ///< of the first links that leave a node
  std::vector<LinkId> first_links_ = {};
  std::vector<FirstLink> links_ = {};           ///< by link
  std::vector<std::size_t> order_ = {};         ///< of the first places
  std::vector<std::vector<double>> most_ = {};  ///< per place, if it is a first one, and period
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
