#include "random_transfers.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr int kGpus = 4;
constexpr int kSwitch = kGpus;

class Generator {
 public:
  Generator(Random& random, bool with_messages, bool with_steps)
      : random_(random), with_messages_(with_messages), with_steps_(with_steps) {}

  Scenario make() {
    made_ = {};
    made_.fabric.nodes.resize(kGpus + 1);
    made_.fabric.nodes.back().kind = NodeKind::switch_;
    for (int g = 0; g < kGpus; ++g) add_link(g, kSwitch);
    for (int g = 0; g < kGpus; ++g) add_link(kSwitch, g);
    for (int g = 0; g < kGpus; ++g) add_link(g, (g + 1) % kGpus);
    for (int i = 0; i < 6; ++i) add_group();
    return std::move(made_);
  }

 private:
  double one_of(std::initializer_list<double> values) { return values.begin()[random_.below(values.size())]; }

  void add_link(int src, int dst) {
    Link link{NodeId{src}, NodeId{dst}, one_of({1, 2, 4}), one_of({0, 0.5, 1.25})};
    if (with_messages_) link.message_us = one_of({0, 1, 2.5});
    if (with_steps_ && random_.below(2) == 0) {
      link.bandwidth_steps = {{0, link.bandwidth_GBps}};
      for (double t = 1 + 9 * random_.unit(); t < 60; t += 1 + 20 * random_.unit())
        link.bandwidth_steps.push_back({t, one_of({0, 0.5, 1, 3})});
      link.bandwidth_steps.push_back({60 + random_.unit(), one_of({1, 2})});
    }
    made_.fabric.links.push_back(std::move(link));
  }

  void add_group() {
    Group group;
    const int src = static_cast<int>(random_.below(kGpus));
    std::vector<int> destinations;
    if (random_.below(2) == 0) {
      destinations = {(src + 1) % kGpus};
      group.links = {2 * kGpus + src};
      group.offsets_us = {0};
    } else {
      group.links = {src};
      group.offsets_us = {0};
      const int wanted = 1 + static_cast<int>(random_.below(2));
      for (int i = 1; i <= wanted; ++i) {
        destinations.push_back((src + i) % kGpus);
        group.links.push_back(kGpus + destinations.back());
        group.offsets_us.push_back(made_.link(src).latency_us);
      }
    }
    for (std::size_t i = 0, chunks = 1 + random_.below(3); i < chunks; ++i) {
      const double bytes = (2 + 10 * random_.unit()) * kUs;
      group.chunks.push_back(static_cast<int>(made_.parts.size()));
      group.bytes += bytes;
      made_.parts.push_back(part(src, bytes, destinations));
    }
    if (!with_steps_ && random_.below(3) > 0)
      group.rate_GBps = made_.least_GBps(group) * one_of({0.25, 0.5, 0.5, 0.77, 1});
    group.is_numbered = group.chunks.size() > 1 || !std::isnan(group.rate_GBps) || random_.below(2) == 0;
    place(group);
    made_.groups.push_back(std::move(group));
  }

  /// At the first time at which it fits; changing links are used one transfer at a time.
  void place(Group& group) {
    std::vector<double> candidates = {0};
    for (const Group& other : made_.groups) {
      candidates.push_back(other.start_us + other.duration_us + 2);
      for (std::size_t i = 0; i < group.links.size(); ++i) {
        for (std::size_t k = 0; k < other.links.size(); ++k) {
          const double met_us = other.start_us + other.offsets_us[k] - group.offsets_us[i];
          candidates.push_back(met_us + other.duration_us);
          candidates.push_back(met_us + made_.link(group.links[i]).message_us);
        }
      }
    }
    std::ranges::sort(candidates);
    for (const double start : candidates) {
      if (start < 0) continue;
      group.start_us = start;
      group.duration_us = with_steps_ ? changing_duration(group) : constant_duration(group);
      if (fits(group)) return;
    }
    ADD_FAILURE() << "nothing fits after everything else";
  }

  double constant_duration(const Group& g) const {
    const double rate = std::isnan(g.rate_GBps) ? made_.least_GBps(g) : g.rate_GBps;
    return made_.message_us(g) + transmission_us(g.bytes, rate);
  }

  /// Bytes flow at the least bandwidth from one change to the next.
  double changing_duration(const Group& g) const {
    std::vector<double> changes = {made_.message_us(g)};
    for (std::size_t i = 0; i < g.links.size(); ++i) {
      for (const BandwidthStep& step : made_.link(g.links[i]).bandwidth_steps)
        changes.push_back(step.from_us - g.start_us - g.offsets_us[i]);
    }
    std::erase_if(changes, [&](double t) { return t < changes.front(); });
    std::ranges::sort(changes);
    changes.push_back(1e6);
    double left = g.bytes;
    for (std::size_t k = 0; k + 1 < changes.size(); ++k) {
      const double middle = (changes[k] + changes[k + 1]) / 2;
      double rate = 1e9;
      for (std::size_t i = 0; i < g.links.size(); ++i)
        rate = std::min(rate, made_.bandwidth_at(g.links[i], g.start_us + g.offsets_us[i] + middle));
      const double carried = (changes[k + 1] - changes[k]) * rate * kBytesPerUsPerGBps;
      if (carried >= left) return changes[k] + transmission_us(left, rate);
      left -= carried;
    }
    return 1e6;
  }

  bool fits(const Group& group) const {
    for (std::size_t i = 0; i < group.links.size(); ++i) {
      const int l = group.links[i];
      const double start = group.start_us + group.offsets_us[i];
      std::vector<double> instants = {start};
      struct Use {
        double from, to, rate;
      };
      std::vector<Use> uses = {{start, start + group.duration_us, rate_of(group)}};
      for (const Group& other : made_.groups) {
        for (std::size_t k = 0; k < other.links.size(); ++k) {
          if (other.links[k] != l) continue;
          const double from = other.start_us + other.offsets_us[k];
          if (std::abs(from - start) < made_.link(l).message_us - 1e-9) return false;
          uses.push_back({from, from + other.duration_us, rate_of(other)});
          instants.push_back(from);
        }
      }
      for (const double t : instants) {
        double sum = 0;
        int at_once = 0;
        for (const Use& use : uses) {
          if (use.from > t + 1e-9 || use.to < t + 1e-9) continue;
          sum += use.rate;
          ++at_once;
        }
        if (with_steps_ ? at_once > 1 : sum > made_.link(l).bandwidth_GBps * (1 + 1e-12)) return false;
      }
    }
    return true;
  }

  double rate_of(const Group& g) const { return std::isnan(g.rate_GBps) ? made_.least_GBps(g) : g.rate_GBps; }

  Random& random_;
  bool with_messages_;
  bool with_steps_;
  Scenario made_;
};

}  // namespace

double Scenario::message_us(const Group& g) const {
  double most = 0;
  for (const int l : g.links) most = std::max(most, link(l).message_us);
  return most;
}

double Scenario::least_GBps(const Group& g) const {
  double least = 1e9;
  for (const int l : g.links) least = std::min(least, link(l).bandwidth_GBps);
  return least;
}

double Scenario::bandwidth_at(int l, double t) const {
  double now = link(l).bandwidth_GBps;
  for (const BandwidthStep& step : link(l).bandwidth_steps) now = step.from_us <= t ? step.GBps : now;
  return now;
}

std::vector<Send> Scenario::sends() const {
  std::vector<Send> all;
  for (std::size_t g = 0; g < groups.size(); ++g) append(groups[g], static_cast<int>(g), all);
  return all;
}

void Scenario::append(const Group& g, int number, std::vector<Send>& all) const {
  for (std::size_t i = 0; i < g.links.size(); ++i) {
    const double start = g.start_us + g.offsets_us[i];
    const double end = start + g.duration_us;
    for (const int c : g.chunks) {
      Send s = at_rate(g.rate_GBps, send(c, g.links[i], start, end, end + link(g.links[i]).latency_us));
      if (g.is_numbered) s.transfer = number;
      all.push_back(s);
    }
  }
}

Scenario random_transfers(Random& random, bool with_messages, bool with_steps) {
  return Generator(random, with_messages, with_steps).make();
}

}  // namespace rondo
