#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "kinds.hpp"
#include "rondo/core/contribution_times.hpp"
#include "rondo/core/units.hpp"

namespace rondo::certificates {
namespace {

/// Times and bytes of the check: 64 bits of mantissa, and rounded outwards besides.
using Wide = long double;

/// Of the bytes: what links may carry beyond them, for times that came out of a closed form in double.
constexpr Wide kBytesTolerance = 1e-12L;

/// While a link takes bytes from where they are open to where they are closed.
struct Window {
  Wide from_us = 0;
  Wide until_us = 0;
  bool is_empty() const { return !(until_us > from_us); }
};

/// A link that carries `GBps` during a part of its window, each byte of which counts `times`.
struct Piece {
  Window window;
  double GBps = 0;
  double times = 1;
};

class Check {
 public:
  Check(const Topology& topology, const Demand& demand, const TimeCutCertificate& cut)
      : topology_(topology), cut_(cut) {
    check_opening(topology, cut.gpu, cut.alpha_us);
    if (!(bound_us() > 0)) refuse_certificate("the GPU is open from 0 us on; that proves nothing");
    if (cut.sources.empty()) {
      separated_ = bytes_that_start_open(topology, demand, cut.gpu, cut.alpha_us);
    } else {
      count_contributions(demand);
    }
  }

  /// Bytes that have to pass from open to closed; of contributions that are counted those of all.
  Wide separated_bytes() const { return separated_; }

  double bound_us() const { return alpha(topology_.node_of(cut_.gpu)); }

  /// Bytes that links can take from open to closed. Any assignment of links to groups is right; here the
  /// groups that hold back most of what their links would carry come first, whatever their order.
  Wide carried_bytes() const {
    struct Held {
      Wide GBps_us;
      const SharedBandwidth* group;
    };
    std::vector<Held> order;
    for (const SharedBandwidth& group : topology_.shared_bandwidth()) {
      std::vector<Piece> pieces;
      for (const LinkId l : group.links) append_pieces(l, pieces);
      order.push_back({carried_alone(pieces) - carried_together(pieces, group.bandwidth_GBps), &group});
    }
    std::ranges::sort(order, [](const Held& a, const Held& b) {
      return std::tie(b.GBps_us, a.group->links, a.group->bandwidth_GBps) <
             std::tie(a.GBps_us, b.group->links, b.group->bandwidth_GBps);
    });
    std::vector<char> is_counted(topology_.num_links(), 0);
    Wide carried = 0;
    for (const Held& held : order) {
      std::vector<Piece> pieces;
      for (const LinkId l : held.group->links) {
        if (!is_counted[l.index()]) append_pieces(l, pieces);
        is_counted[l.index()] = 1;
      }
      carried += carried_together(pieces, held.group->bandwidth_GBps);
    }
    std::vector<Piece> pieces;
    for (std::size_t l = 0; l < topology_.num_links(); ++l) {
      if (!is_counted[l]) append_pieces(LinkId(l), pieces);
    }
    return (carried + carried_alone(pieces)) * kBytesPerUsPerGBps;
  }

 private:
  double alpha(NodeId n) const { return cut_.alpha_us[n.index()]; }

  void count_contributions(const Demand& demand) {
    check_ascending(cut_.sources, topology_.num_gpus(), "sources");
    if (topology_.has_bandwidth_steps())
      refuse_certificate("a time cut that counts contributions proves nothing where bandwidth changes");
    const std::vector<const Contribution*> sums = plain_sums_for(demand, cut_.gpu);
    const std::vector<TimedSource> sources = timed_sources(sums, cut_.sources);
    for (const Contribution* sum : sums) {
      for (std::size_t i = 0; i < sum->sources.size(); ++i) {
        const bool is_named = std::ranges::binary_search(cut_.sources, sum->sources[i]);
        if (is_named && alpha(topology_.node_of(sum->sources[i])) <= sum->ready_us_of(i))
          separated_ += sum->bytes;
      }
    }
    times_us_ = contribution_times(topology_, sources);
  }

  /// Where a transfer begins no byte leaves before its message cost is over.
  Window window_of(const Link& link) const {
    const double message_us = topology_.message_us_at_start(link);
    const Wide opens = alpha(link.src);
    const Wide before = Wide{link.latency_us} + message_us;
    // First the difference, which is exact where the two are near each other.
    const Wide length = (Wide{alpha(link.dst)} - opens) - before;
    if (!(length > 0)) return {};
    const Wide outwards = 4 * std::numeric_limits<Wide>::epsilon() * (alpha(link.dst) + opens + before);
    const Wide from = opens + message_us;
    return {from - outwards, from + length + outwards};
  }

  void append_pieces(LinkId l, std::vector<Piece>& pieces) const {
    const Link& link = topology_.link(l);
    const Window window = window_of(link);
    if (window.is_empty()) return;
    if (!times_us_.empty()) {
      append_counted_pieces(link, window, pieces);
      return;
    }
    if (link.bandwidth_steps.empty()) {
      pieces.push_back({window, link.bandwidth_GBps});
      return;
    }
    for (std::size_t i = 0; i < link.bandwidth_steps.size(); ++i) {
      Piece piece{window, link.bandwidth_steps[i].GBps};
      // The first step also holds for the rounding below 0.
      if (i > 0) piece.window.from_us = std::max<Wide>(window.from_us, link.bandwidth_steps[i].from_us);
      if (i + 1 < link.bandwidth_steps.size())
        piece.window.until_us = std::min<Wide>(window.until_us, link.bandwidth_steps[i + 1].from_us);
      if (!piece.window.is_empty()) pieces.push_back(piece);
    }
  }

  /// A byte that leaves has no contributions but those that can be there when its transfer starts.
  void append_counted_pieces(const Link& link, const Window& window, std::vector<Piece>& pieces) const {
    const std::vector<double>& times_us = times_us_[link.src.index()];
    const Wide message_us = topology_.message_us_at_start(link);
    for (std::size_t k = 0; k < times_us.size(); ++k) {
      Piece piece{window, link.bandwidth_GBps, static_cast<double>(k + 1)};
      piece.window.from_us = std::max(window.from_us, times_us[k] + message_us);
      if (k + 1 < times_us.size())
        piece.window.until_us = std::min(window.until_us, times_us[k + 1] + message_us);
      if (!piece.window.is_empty()) pieces.push_back(piece);
    }
  }

  static Wide carried_alone(const std::vector<Piece>& pieces) {
    Wide carried = 0;
    for (const Piece& piece : pieces)
      carried += piece.times * piece.GBps * (piece.window.until_us - piece.window.from_us);
    return carried;
  }

  /// The integral of the least of `most_GBps`, as often as counts what counts most of what is open, and what
  /// the pieces carry at each instant, in GB/s times us.
  static Wide carried_together(const std::vector<Piece>& pieces, double most_GBps) {
    struct Change {
      Wide at_us;
      Wide GBps;
      double times;
      bool opens;
    };
    std::vector<Change> changes;
    for (const Piece& piece : pieces) {
      const Wide counted_GBps = piece.times * Wide{piece.GBps};
      changes.push_back({piece.window.from_us, counted_GBps, piece.times, true});
      changes.push_back({piece.window.until_us, -counted_GBps, piece.times, false});
    }
    std::ranges::sort(changes, {}, [](const Change& c) { return std::tuple(c.at_us, c.GBps, c.times); });
    Wide carried = 0;
    Wide GBps = 0;
    std::map<double, int> open;  // how often what is open counts
    for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
      GBps += changes[i].GBps;
      if ((open[changes[i].times] += changes[i].opens ? 1 : -1) == 0) open.erase(changes[i].times);
      const Wide most = open.empty() ? 0 : open.rbegin()->first * Wide{most_GBps};
      carried += std::min(std::max<Wide>(GBps, 0), most) * (changes[i + 1].at_us - changes[i].at_us);
    }
    return carried;
  }

  const Topology& topology_;
  const TimeCutCertificate& cut_;
  Wide separated_ = 0;
  std::vector<std::vector<double>> times_us_ = {};  ///< per node, where contributions count one by one
};

}  // namespace

double bound(const Topology& topology, const Demand& demand, const TimeCutCertificate& cut) {
  const Check check(topology, demand, cut);
  const Wide separated = check.separated_bytes();
  if (!(separated > 0)) {
    refuse_certificate(fmt::format(
        "nothing that GPU {} wants is with open GPUs alone when they first have it", cut.gpu.value));
  }
  const Wide carried = check.carried_bytes();
  // Links that go down before the end may have carried all by then: of as much as has to pass nothing
  // follows.
  const Wide tolerance = topology.has_bandwidth_steps() ? -kBytesTolerance : kBytesTolerance;
  if (!(carried <= separated * (1 + tolerance))) {
    refuse_certificate(fmt::format(
        "the links can take {} bytes from open to closed nodes and {} have to pass; the time cut "
        "needs them to take {}",
        static_cast<double>(carried), static_cast<double>(separated), tolerance < 0 ? "less" : "no more"));
  }
  return check.bound_us();
}

}  // namespace rondo::certificates
