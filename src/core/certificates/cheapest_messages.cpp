#include "rondo/core/cheapest_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "kinds.hpp"
#include "message_ways.hpp"
#include "timed_prices.hpp"

namespace rondo {
namespace {

using certificates::Exact;
using certificates::MessageWay;
using certificates::refuse_certificate;

constexpr double kNotPaid = std::numeric_limits<double>::infinity();
constexpr int kMostPartsOfPeriod = 1024;
/// Of the sum of all prices of a way: what sums of some of them may be off; times that differ by less, as a
/// part of the end, are one.
constexpr double kMessageRounding = 1e-13;

}  // namespace

struct CheapestMessages::Implementation {
 public:
  Implementation(const Topology& topology, const MessagePricesCertificate& certificate)
      : topology_(topology), certificate_(certificate), prices_(topology, certificate.prices) {
    if (certificate.parts < 1 || certificate.parts > kMostPartsOfPeriod)
      refuse_certificate(
          fmt::format("periods have {} parts; 1 to {} are right", certificate.parts, kMostPartsOfPeriod));
    set_begins();
    ways_ = certificates::message_ways(topology);
    set_times();
    if (work() > kMostMessageWork)
      refuse_certificate(
          fmt::format("there are {} ways of messages and {} times at which they may start or "
                      "end; that is too much to check",
                      ways_.size(), times_us_.size()));
    for (const double us : times_us_) part_of_time_.push_back(part_at(us));
    for (const MessageWay& way : ways_) paid_by_.push_back(paid_until(way));
    for (std::size_t w = 0; w < ways_.size(); ++w) ways_from_[ways_[w].from].push_back(w);
    for (const MessageWay& way : ways_) arrivals_[way.latency_us];
    for (auto& [latency_us, arrivals] : arrivals_) {
      for (const double us : times_us_) arrivals.part.push_back(part_before(us + latency_us));
      arrivals.first_of_part.assign(num_parts() + 1, times_us_.size());
      for (std::size_t t = times_us_.size(); t-- > 0;) arrivals.first_of_part[arrivals.part[t]] = t;
    }
  }

  double work() const {
    return 0.5 * static_cast<double>(ways_.size()) * std::pow(static_cast<double>(times_us_.size()), 2);
  }
  double earned() const { return static_cast<double>(prices_.earnings()); }

  void towards(NodeId destination) {
    destination_ = destination.index();
    least_.assign(topology_.num_nodes() * num_parts(), {});
    for (std::size_t part = 0; part < num_parts(); ++part) at(destination_, part).payment = 0;
    for (auto& [latency_us, arrivals] : arrivals_)
      arrivals.payment.assign(topology_.num_nodes() * times_us_.size(), kNotPaid);
    for (std::size_t part = num_parts(); part-- > 0;) {
      pay_from(part);
      for (auto& [latency_us, arrivals] : arrivals_) {
        for (std::size_t t = arrivals.first_of_part[part]; t < times_us_.size() && arrivals.part[t] == part;
             ++t) {
          for (std::size_t n = 0; n < topology_.num_nodes(); ++n)
            arrivals.payment[n * times_us_.size() + t] = at(n, part).payment;
        }
      }
    }
  }

  double least_payment(NodeId node, double from_us) const {
    return from_us < end_us() ? at(node.index(), part_at(from_us)).payment : kNotPaid;
  }

  std::vector<PaidMessage> messages(NodeId node, double from_us) const {
    std::vector<PaidMessage> all;
    if (!(least_payment(node, from_us) < kNotPaid)) return all;
    std::size_t n = node.index();
    std::size_t part = part_at(from_us);
    while (n != destination_) {
      const Choice& choice = at(n, part);
      if (choice.way == kWait) {
        ++part;
        continue;
      }
      const MessageWay& way = ways_[choice.way];
      all.push_back({way.steps, way.message_us, times_us_[choice.start], times_us_[choice.end]});
      n = way.to;
      part = arrivals_.at(way.latency_us).part[choice.end];
    }
    return all;
  }

 private:
  static constexpr std::size_t kWait = static_cast<std::size_t>(-1);

  /// What is cheapest for a byte that is at a node in a part: to wait for the next part, or a message.
  struct Choice {
    double payment = kNotPaid;
    std::size_t way = kWait;
    std::size_t start = 0;  ///< times
    std::size_t end = 0;
  };

  std::size_t num_parts() const { return begins_us_.size(); }
  double end_us() const { return certificate_.prices.until_us; }
  Choice& at(std::size_t node, std::size_t part) { return least_[node * num_parts() + part]; }
  const Choice& at(std::size_t node, std::size_t part) const { return least_[node * num_parts() + part]; }

  void set_begins() {
    for (std::size_t period = 0; period < prices_.num_periods(); ++period) {
      const double from_us = prices_.from_us(period);
      const double length_us = prices_.end_us(period) - from_us;
      for (int k = 0; k < certificate_.parts; ++k)
        begins_us_.push_back(from_us + length_us * k / certificate_.parts);
    }
    if (!std::ranges::is_sorted(begins_us_, std::less_equal{}) || !(begins_us_.back() < end_us()))
      refuse_certificate("parts of a period are too short to be told apart");
  }

  /// Between two of them what a message pays on any way is a quotient of linear functions of where it starts
  /// and where it ends, which is least at the ends.
  void set_times() {
    std::vector<double> before_us{0};
    for (const MessageWay& way : ways_) {
      before_us.push_back(way.latency_us);
      for (const PaidMessage::Step& step : way.steps) before_us.push_back(step.latency_us);
    }
    std::ranges::sort(before_us);
    before_us.erase(std::unique(before_us.begin(), before_us.end()), before_us.end());
    std::vector<double> breaks_us = begins_us_;
    breaks_us.push_back(end_us());
    for (const double break_us : breaks_us) {
      for (const double us : before_us) {
        if (break_us >= us) times_us_.push_back(break_us - us);
      }
    }
    std::ranges::sort(times_us_);
    const auto is_same = [&](double a, double b) { return b - a <= kMessageRounding * end_us(); };
    times_us_.erase(std::unique(times_us_.begin(), times_us_.end(), is_same), times_us_.end());
  }

  std::size_t part_at(double us) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(begins_us_, us) - begins_us_.begin()) - 1;
  }

  /// The last part that begins before `us`; none, their number, behind the end, but for rounding.
  std::size_t part_before(double us) const {
    if (us > end_us() * (1 + kMessageRounding)) return num_parts();
    const auto next = std::ranges::lower_bound(begins_us_, us * (1 - kMessageRounding));
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, next - begins_us_.begin())) - 1;
  }

  /// Per time, the integral until then of the prices of all links of the way, of each as much later as it
  /// comes behind the start.
  std::vector<double> paid_until(const MessageWay& way) const {
    std::vector<double> sums(times_us_.size(), 0);
    for (const PaidMessage::Step& step : way.steps) {
      std::size_t period = 0;
      Exact sum = 0;
      Exact reached_us = 0;
      for (std::size_t t = 0; t < times_us_.size(); ++t) {
        const Exact us = Exact{times_us_[t]} + step.latency_us;
        for (; period < prices_.num_periods() && prices_.end_us(period) <= us; ++period) {
          sum += prices_.of(period, step.link) * (prices_.end_us(period) - reached_us);
          reached_us = prices_.end_us(period);
        }
        if (period < prices_.num_periods()) {
          sum += prices_.of(period, step.link) * (us - reached_us);
          reached_us = us;
        }
        sums[t] += static_cast<double>(sum);
      }
    }
    return sums;
  }

  struct WithinPart {
    std::size_t from;
    Choice message;
  };

  /// Bytes that are somewhere in `part` wait, or go on by a message that starts in it.
  void pay_from(std::size_t part) {
    std::vector<WithinPart> within;
    for (const auto& [node, ways] : ways_from_) {
      Choice& best = at(node, part);
      if (node == destination_) continue;
      if (part + 1 < num_parts()) best = {at(node, part + 1).payment};
      for (const std::size_t w : ways) {
        Choice arrives_within{.way = w};
        try_messages(w, part, best, arrives_within);
        if (arrives_within.payment < kNotPaid) within.push_back({node, arrives_within});
      }
    }
    for (bool changes = !within.empty(); changes;) {
      changes = false;
      for (const auto& [from, message] : within) {
        const double payment = message.payment + at(ways_[message.way].to, part).payment;
        if (!(payment < at(from, part).payment)) continue;
        at(from, part) = message;
        at(from, part).payment = payment;
        changes = true;
      }
    }
  }

  /// `arrives_within`: the cheapest message that arrives in the part in which it starts, by itself.
  void try_messages(std::size_t w, std::size_t part, Choice& best, Choice& arrives_within) {
    const MessageWay& way = ways_[w];
    const Arrivals& arrivals = arrivals_.at(way.latency_us);
    const double* const paid = paid_by_[w].data();
    const double off = kMessageRounding * paid_by_[w].back();
    const double* const there = &arrivals.payment[way.to * times_us_.size()];
    const auto first_start = std::ranges::lower_bound(times_us_, begins_us_[part]) - times_us_.begin();
    for (auto x = static_cast<std::size_t>(first_start); x < times_us_.size() && part_of_time_[x] == part;
         ++x) {
      const double earliest_us = times_us_[x] + way.message_us - kMessageRounding * end_us();
      const double before = paid[x] + off;
      const auto cost = [&](std::size_t z) {
        const double between = paid[z] - before;
        return (between > 0 ? between : 0) / (times_us_[z] - earliest_us);
      };
      const auto first_end = std::ranges::upper_bound(times_us_, earliest_us) - times_us_.begin();
      std::size_t z = std::max(x + 1, static_cast<std::size_t>(first_end));
      for (; z < times_us_.size() && arrivals.part[z] == part; ++z) {
        if (const double alone = cost(z); alone < arrives_within.payment) arrives_within = {alone, w, x, z};
      }
      // The later it arrives, the more it has to pay from there on.
      const auto too_late = std::partition_point(there + z, there + std::max(z, times_us_.size()),
                                                 [&](double payment) { return payment < best.payment; });
      const auto end = static_cast<std::size_t>(too_late - there);
      if (z >= end) continue;
      payments_.resize(end - z);
      for (std::size_t k = z; k < end; ++k) payments_[k - z] = cost(k) + there[k];
      const auto least = std::ranges::min_element(payments_);
      if (*least < best.payment)
        best = {*least, w, x, z + static_cast<std::size_t>(least - payments_.begin())};
    }
  }

  /// By when a message ends, of ways with one latency.
  struct Arrivals {
    std::vector<std::size_t> part = {};           ///< per time: in which it arrives that ends just before it
    std::vector<std::size_t> first_of_part = {};  ///< the first time, or their number
    std::vector<double> payment = {};             ///< per node and time, from that part on
  };

  const Topology& topology_;
  const MessagePricesCertificate& certificate_;
  certificates::TimedPrices prices_;
  std::vector<MessageWay> ways_ = {};
  std::map<std::size_t, std::vector<std::size_t>> ways_from_ = {};  ///< per node
  std::vector<double> begins_us_ = {};                              ///< of the parts of all periods
  std::vector<double> times_us_ = {};                               ///< where messages may start and end
  std::vector<std::size_t> part_of_time_ = {};
  std::vector<std::vector<double>> paid_by_ = {};  ///< per way and time
  std::map<double, Arrivals> arrivals_ = {};       ///< by latency
  std::vector<double> payments_ = {};              ///< of messages that are compared
  std::size_t destination_ = 0;                    ///< node
  std::vector<Choice> least_ = {};                 ///< per node and part
};

CheapestMessages::CheapestMessages(const Topology& topology, const MessagePricesCertificate& certificate)
    : implementation_(std::make_unique<Implementation>(topology, certificate)), topology_(topology) {}
CheapestMessages::~CheapestMessages() = default;

double CheapestMessages::work() const {
  return implementation_->work();
}
double CheapestMessages::earned() const {
  return implementation_->earned();
}
void CheapestMessages::towards(GpuId destination) {
  implementation_->towards(topology_.node_of(destination));
}
double CheapestMessages::least_payment(GpuId source, double from_us) const {
  return implementation_->least_payment(topology_.node_of(source), from_us);
}
double CheapestMessages::payments(const std::vector<WantedBytes>& wanted) {
  double sum = 0;
  double looked_at = 0;
  GpuId destination;
  for (const WantedBytes& some : wanted) {
    if (some.destination != destination) {
      looked_at += work();
      if (looked_at > kMostMessageWork)
        refuse_certificate("it has more GPUs, ways of messages and times than can be checked");
      towards(destination = some.destination);
    }
    double most = 0;
    for (const WantedBytes::Source& source : some.sources)
      most = std::max(most, least_payment(source.gpu, source.from_us));
    sum += some.bytes * most;
  }
  return sum;
}
std::vector<PaidMessage> CheapestMessages::messages(GpuId source, double from_us) const {
  return implementation_->messages(topology_.node_of(source), from_us);
}

}  // namespace rondo
