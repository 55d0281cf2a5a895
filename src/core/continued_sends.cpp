#include "continued_sends.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

/// What a transfer takes for a message and for each byte, by those of its links that are known.
struct Pace {
  double message_us = 0;
  double us_per_byte = 0;
};

/// Finds which send continues which at switches.
class SwitchPairing {
 public:
  /// With the demand, by whose bytes transfers that meet where messages cost can be told apart.
  SwitchPairing(const Topology& topology, std::span<const Send> sends, const Demand* demand = nullptr)
      : topology_(topology),
        sends_(sends),
        // What switches add up has numbers.
        demand_(topology.has_message_costs() && !topology.has_adding_switches() ? demand : nullptr),
        continued_(sends.size(), -1),
        first_send_(sends.size(), -1),
        uses_(sends.size(), 0),
        start_of_section_(demand_ != nullptr ? sends.size() : 0, -1),
        pace_(start_of_section_.size()) {
    std::vector<int> by_start(sends.size());
    std::iota(by_start.begin(), by_start.end(), 0);
    std::ranges::stable_sort(by_start, {}, [&](int s) { return send(s).start_us; });
    std::vector<int> leaving;
    for (const int s : by_start) {
      if (topology.is_gpu(src(s))) {
        first_send_[index(s)] = s;
        if (demand_ != nullptr) {
          start_of_section_[index(s)] = s;
          pace_[index(s)] = pace_with({}, s);
        }
      } else {
        leaving.push_back(s);
      }
      if (!topology.is_gpu(dst(s))) entering_[key(s, dst(s))].push_back(s);
    }
    // Each goes on once before any goes on twice, also where that it goes on is found late: without latency
    // all begin at once.
    if (demand_ != nullptr) {
      pair_by_pace(leaving);
    } else {
      pair_all(leaving, Wanted::nothing_continues);
    }
    pair_all(leaving, Wanted::any);
    const auto adds = [](const Send& each) { return each.op == SendOp::reduce; };
    if (demand_ == nullptr && std::ranges::none_of(sends, adds)) untangle();
    if (topology.has_adding_switches()) add_up();
  }

  std::vector<Delivery> deliveries() const {
    std::vector<Delivery> deliveries;
    for (int s = 0; s < static_cast<int>(sends_.size()); ++s) {
      if (first_send_[index(s)] < 0 || !topology_.is_gpu(dst(s))) continue;
      // What a switch adds up replaces, or is added to, what is there as a whole.
      SendOp op = send(s).op;
      for (const int first : first_sends(s)) {
        deliveries.push_back({send(s).chunk, topology_.gpu_of(src(first)), topology_.gpu_of(dst(s)),
                              send(first).start_us, send(s).arrival_us, first, s, -1, op});
        op = SendOp::reduce;
      }
    }
    std::ranges::sort(deliveries, {},
                      [](const Delivery& d) { return std::tuple(d.start_us, d.first_send, d.last_send); });
    return deliveries;
  }

  std::vector<int> take_continued() { return std::move(continued_); }
  std::vector<int> take_added_into() { return std::move(added_into_); }

 private:
  const Send& send(int s) const { return sends_[index(s)]; }
  NodeId src(int s) const { return topology_.link(send(s).link).src; }
  NodeId dst(int s) const { return topology_.link(send(s).link).dst; }
  std::uint64_t key(int s, NodeId node) const {
    return static_cast<std::uint64_t>(send(s).chunk.index()) * topology_.num_nodes() + node.index();
  }

  bool can_continue(const Send& in, const Send& out, Forwarding forwarding) const {
    if (forwarding == Forwarding::store_and_forward) return not_after(in.arrival_us, out.start_us);
    if (in.transfer != out.transfer) return false;
    // At one rate the last byte passes as the first one does.
    return times_equal(in.start_us + topology_.link(in.link).latency_us, out.start_us) &&
           times_equal(in.arrival_us, out.end_us);
  }

  /// What may be continued: what needs this link, by a link that does not explain it alone or by any; what
  /// nothing continues yet; all.
  enum class Wanted { needs_another, needs_it, nothing_continues, any };

  /// Without latency a send may leave a switch before the one that it continues in the order of starts.
  /// Returns whether it found any.
  bool pair_all(std::vector<int>& leaving, Wanted wanted) {
    const std::size_t all = leaving.size();
    for (std::size_t before = all + 1; leaving.size() < before;) {
      before = leaving.size();
      std::erase_if(leaving, [&](int s) { return pair(s, wanted); });
    }
    return leaving.size() < all;
  }

  /// Of what meets at one instant without numbers, a transfer's slowest link and dearest message may be those
  /// of links behind the switch. So what lasts longer than its own links explain goes first, with what
  /// explains it, links that serve fewer before those that serve more; then every other gets something.
  void pair_by_pace(std::vector<int>& leaving) {
    while (pair_all(leaving, Wanted::needs_another) || pair_all(leaving, Wanted::needs_it) ||
           pair_all(leaving, Wanted::nothing_continues)) {
    }
  }

  Pace pace_with(const Pace& before, int s) const {
    const Link& link = topology_.link(send(s).link);
    return {std::max(before.message_us, link.message_us),
            std::max(before.us_per_byte, transmission_us(1, link.bandwidth_GBps))};
  }
  bool explains(const Pace& pace, int s) const {
    const double lasts_us = pace.message_us + pace.us_per_byte * demand_->bytes(send(s).chunk);
    return times_equal(send(s).start_us + lasts_us, send(s).end_us);
  }
  bool is_explained_with(int in, int out) const {
    return explains(pace_with(pace_[index(start_of_section_[index(in)])], out), out);
  }
  bool may_be_wanted(int in, int out, Wanted wanted) const {
    if (wanted == Wanted::any) return true;
    if (uses_[index(in)] > 0) return false;
    if (wanted == Wanted::nothing_continues) return true;
    if (wanted == Wanted::needs_another && explains(pace_with({}, out), out)) return false;
    return !explains(pace_[index(start_of_section_[index(in)])], in) && is_explained_with(in, out);
  }
  /// In how much, message and bytes, `in` needs `out`.
  int needs(int in, int out) const {
    const Pace& pace = pace_[index(start_of_section_[index(in)])];
    const Pace more = pace_with({}, out);
    return (pace.message_us < more.message_us ? 1 : 0) + (pace.us_per_byte < more.us_per_byte ? 1 : 0);
  }

  std::uint64_t over_link(int in, int out) const {
    return index(in) * topology_.num_links() + send(out).link.index();
  }

  bool is_better(int a, int b, int out) const {
    // Where rates leave room, two transfers of a chunk may go over a link at one time, but none twice.
    const bool is_over_link = over_link_.contains(over_link(a, out));
    if (is_over_link != over_link_.contains(over_link(b, out))) return !is_over_link;
    if (demand_ != nullptr) {
      if (is_explained_with(a, out) != is_explained_with(b, out)) return is_explained_with(a, out);
      if (uses_[index(a)] == 0 && uses_[index(b)] == 0 && needs(a, out) != needs(b, out))
        return needs(a, out) > needs(b, out);
    }
    if ((uses_[index(a)] == 0) != (uses_[index(b)] == 0)) return uses_[index(a)] == 0;
    if (!times_equal(send(a).arrival_us, send(b).arrival_us)) return send(a).arrival_us > send(b).arrival_us;
    return uses_[index(a)] < uses_[index(b)];
  }

  bool pair(int out, Wanted wanted) {
    const NodeId at = src(out);
    const Forwarding forwarding = topology_.node(at).forwarding;
    int best = -1;
    int possible = 0;
    for (const int in : entering_[key(out, at)]) {
      if (!can_continue(send(in), send(out), forwarding)) continue;
      ++possible;
      if (first_send_[index(in)] < 0) continue;
      // What is added up goes on together, on however many links: all of them continue the first that enters.
      const bool is_added =
          send(in).op == SendOp::reduce && topology_.node(at).reduce && forwarding == Forwarding::cut_through;
      if (!is_added && !may_be_wanted(in, out, wanted)) continue;
      if (best < 0 || (!is_added && is_better(in, best, out))) best = in;
    }
    if (best < 0) return false;
    ++uses_[index(best)];
    if (possible > 1 && forwarding == Forwarding::cut_through) over_link_.insert(over_link(best, out));
    continued_[index(out)] = best;
    first_send_[index(out)] = first_send_[index(best)];
    if (demand_ != nullptr) {
      const bool is_new = forwarding == Forwarding::store_and_forward;
      const int section = start_of_section_[index(out)] = is_new ? out : start_of_section_[index(best)];
      pace_[index(section)] = pace_with(is_new ? Pace{} : pace_[index(section)], out);
    }
    return true;
  }

  /// The sends that `last` continues, itself first.
  std::vector<int> chain(int last) const {
    std::vector<int> sends;
    for (int s = last; s >= 0; s = continued_[index(s)]) sends.push_back(s);
    return sends;
  }
  /// Whether it comes through a switch twice, which no transfer has a reason to: of some that pass a switch
  /// at one instant without numbers, two were taken for each other.
  bool is_tangled(int last) const {
    for (int s = last; s >= 0; s = continued_[index(s)]) {
      for (int before = continued_[index(s)]; before >= 0; before = continued_[index(before)]) {
        if (dst(before) == dst(s)) return true;
      }
    }
    return false;
  }
  double slowest_GBps(int last) const {
    double GBps = topology_.link(send(last).link).bandwidth_GBps;
    for (const int s : chain(last)) GBps = std::min(GBps, topology_.link(send(s).link).bandwidth_GBps);
    return GBps;
  }

  void untangle() {
    std::vector<int> tangled;
    for (int s = 0; s < static_cast<int>(sends_.size()); ++s) {
      if (continued_[index(s)] >= 0 && topology_.is_gpu(dst(s)) && is_tangled(s)) tangled.push_back(s);
    }
    if (tangled.empty()) return;
    std::unordered_map<std::uint64_t, std::vector<int>> leaving;  // of chunk and switch
    std::vector<std::vector<int>> onward(sends_.size());
    for (int s = 0; s < static_cast<int>(sends_.size()); ++s) {
      if (continued_[index(s)] < 0) continue;
      leaving[key(s, src(s))].push_back(s);
      onward[index(continued_[index(s)])].push_back(s);
    }
    for (const int last : tangled) {
      const std::vector<int> ways = chain(last);
      for (const int s : ways) {
        if (continued_[index(s)] < 0 || !is_tangled(last)) break;
        for (const int other : leaving[key(s, src(s))]) {
          if (exchange_if_better(s, other, onward)) break;
        }
      }
    }
    for (int s = 0; s < static_cast<int>(sends_.size()); ++s) {
      if (continued_[index(s)] >= 0) first_send_[index(s)] = chain(s).back();
    }
  }

  /// Two that leave a switch continue each what the other has, if fewer are tangled then and none may be
  /// faster or slower by it.
  bool exchange_if_better(int a, int b, std::vector<std::vector<int>>& onward) {
    const int before_a = continued_[index(a)];
    const int before_b = continued_[index(b)];
    const Forwarding forwarding = topology_.node(src(a)).forwarding;
    if (forwarding != Forwarding::cut_through || before_a == before_b ||
        !can_continue(send(before_a), send(b), forwarding) ||
        !can_continue(send(before_b), send(a), forwarding))
      return false;
    const auto has_another_over_link = [&](int before, int out, int but) {
      return std::ranges::any_of(onward[index(before)],
                                 [&](int s) { return s != but && send(s).link == send(out).link; });
    };
    if (has_another_over_link(before_a, b, a) || has_another_over_link(before_b, a, b)) return false;
    // Without latency one may carry on the other.
    const auto carries_on = [&](int last, int first) { return std::ranges::count(chain(last), first) > 0; };
    if (carries_on(before_a, b) || carries_on(before_b, a)) return false;
    std::vector<int> ends = {a, b};
    for (std::size_t i = 0; i < ends.size(); ++i)
      ends.insert(ends.end(), onward[index(ends[i])].begin(), onward[index(ends[i])].end());
    std::vector<double> slowest_GBps_before;
    for (const int end : ends) slowest_GBps_before.push_back(slowest_GBps(end));
    const auto count = [&] { return std::ranges::count_if(ends, [&](int end) { return is_tangled(end); }); };
    const auto tangled_before = count();
    const auto exchange = [&] {
      std::ranges::replace(onward[index(continued_[index(a)])], a, b);
      std::ranges::replace(onward[index(continued_[index(b)])], b, a);
      std::swap(continued_[index(a)], continued_[index(b)]);
    };
    exchange();
    bool is_alike = true;
    for (std::size_t i = 0; i < ends.size(); ++i)
      is_alike =
          is_alike && (!onward[index(ends[i])].empty() || slowest_GBps(ends[i]) == slowest_GBps_before[i]);
    if (is_alike && count() < tangled_before) return true;
    exchange();
    return false;
  }

  /// What enters an adding switch and is continued by nothing joins the first send of its chunk that it could
  /// go on as.
  void add_up() {
    added_into_.assign(sends_.size(), -1);
    std::unordered_map<std::uint64_t, std::vector<int>> leaving;
    for (int out = 0; out < static_cast<int>(sends_.size()); ++out) {
      if (continued_[index(out)] >= 0 && topology_.node(src(out)).reduce)
        leaving[key(out, src(out))].push_back(out);
    }
    for (int in = 0; in < static_cast<int>(sends_.size()); ++in) {
      if (uses_[index(in)] > 0 || first_send_[index(in)] < 0) continue;
      const auto outs = leaving.find(key(in, dst(in)));
      if (outs == leaving.end()) continue;
      int& joined = added_into_[index(in)];
      for (const int out : outs->second) {
        if (!can_continue(send(in), send(out), topology_.node(dst(in)).forwarding)) continue;
        if (joined < 0 || send(out).start_us < send(joined).start_us) joined = out;
      }
      if (joined < 0) continue;
      for (const int out : outs->second) {
        if (continued_[index(out)] == continued_[index(joined)]) added_to_[out].push_back(in);
      }
    }
  }

  /// The sends that leave GPUs and that `last` carries on, alone or added up.
  std::vector<int> first_sends(int last) const {
    if (added_to_.empty()) return {first_send_[index(last)]};
    std::vector<int> firsts, open = {last};
    // In sends that no replay accepts, what is added up may come round to itself.
    std::unordered_set<int> seen = {last};
    const auto visit = [&](int s) {
      if (seen.insert(s).second) open.push_back(s);
    };
    while (!open.empty()) {
      const int s = open.back();
      open.pop_back();
      if (continued_[index(s)] < 0) firsts.push_back(s);
      if (continued_[index(s)] >= 0) visit(continued_[index(s)]);
      if (const auto added = added_to_.find(s); added != added_to_.end()) {
        for (const int in : added->second) visit(in);
      }
    }
    return firsts;
  }

  const Topology& topology_;
  std::span<const Send> sends_;
  const Demand* demand_;  ///< null where no message costs anything, and where switches add
  std::vector<int> continued_;
  std::vector<int> first_send_;
  std::vector<int> added_into_;
  std::unordered_map<int, std::vector<int>> added_to_;            ///< per send what is added to it
  std::vector<int> uses_;                                         ///< how many sends continue it
  std::unordered_set<std::uint64_t> over_link_;                   ///< over which links, of several in one
  std::vector<int> start_of_section_;                             ///< empty without demand, as the next
  std::vector<Pace> pace_;                                        ///< of the section that starts with it
  std::unordered_map<std::uint64_t, std::vector<int>> entering_;  ///< per chunk and switch, by start
};

}  // namespace

std::vector<int> continued_sends(const Topology& topology, std::span<const Send> sends) {
  return SwitchPairing(topology, sends).take_continued();
}

Transfers paired_at_switches(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  SwitchPairing pairing(topology, sends, &demand);
  Transfers transfers{{}, {}, pairing.deliveries()};
  transfers.continued = pairing.take_continued();
  transfers.added_into = pairing.take_added_into();
  return transfers;
}

}  // namespace rondo
