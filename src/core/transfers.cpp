#include "rondo/core/transfers.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "continued_sends.hpp"
#include "partial_sums.hpp"
#include "rondo/core/replay.hpp"

namespace rondo {
namespace {

bool not_after(double a_us, double b_us) {
  return a_us <= b_us || times_equal(a_us, b_us);
}

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
        demand_(topology.has_message_costs() ? demand : nullptr),
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
    if (demand_ != nullptr) pair_by_pace(leaving);
    pair_all(leaving, Wanted::any);
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

  /// What `out` may continue.
  enum class Wanted { what_needs_it, what_nothing_continues, any };

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
  /// explains it; then every other gets something.
  void pair_by_pace(std::vector<int>& leaving) {
    while (pair_all(leaving, Wanted::what_needs_it) || pair_all(leaving, Wanted::what_nothing_continues)) {
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
    if (wanted == Wanted::what_nothing_continues) return true;
    return !explains(pace_[index(start_of_section_[index(in)])], in) && is_explained_with(in, out);
  }

  bool is_better(int a, int b, int out) const {
    if (demand_ != nullptr && is_explained_with(a, out) != is_explained_with(b, out))
      return is_explained_with(a, out);
    if ((uses_[index(a)] == 0) != (uses_[index(b)] == 0)) return uses_[index(a)] == 0;
    if (!times_equal(send(a).arrival_us, send(b).arrival_us)) return send(a).arrival_us > send(b).arrival_us;
    return uses_[index(a)] < uses_[index(b)];
  }

  bool pair(int out, Wanted wanted) {
    const NodeId at = src(out);
    int best = -1;
    for (const int in : entering_[key(out, at)]) {
      if (first_send_[index(in)] < 0 || !can_continue(send(in), send(out), topology_.node(at).forwarding))
        continue;
      // What is added up goes on together, on however many links: all of them continue the first that enters.
      const bool is_added = send(in).op == SendOp::reduce && topology_.node(at).reduce &&
                            topology_.node(at).forwarding == Forwarding::cut_through;
      if (!is_added && !may_be_wanted(in, out, wanted)) continue;
      if (best < 0 || (!is_added && is_better(in, best, out))) best = in;
    }
    if (best < 0) return false;
    ++uses_[index(best)];
    continued_[index(out)] = best;
    first_send_[index(out)] = first_send_[index(best)];
    if (demand_ != nullptr) {
      const bool is_new = topology_.node(at).forwarding == Forwarding::store_and_forward;
      const int section = start_of_section_[index(out)] = is_new ? out : start_of_section_[index(best)];
      pace_[index(section)] = pace_with(is_new ? Pace{} : pace_[index(section)], out);
    }
    return true;
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
    while (!open.empty()) {
      const int s = open.back();
      open.pop_back();
      if (continued_[index(s)] < 0) firsts.push_back(s);
      if (continued_[index(s)] >= 0) open.push_back(continued_[index(s)]);
      if (const auto added = added_to_.find(s); added != added_to_.end())
        open.insert(open.end(), added->second.begin(), added->second.end());
    }
    return firsts;
  }

  const Topology& topology_;
  std::span<const Send> sends_;
  const Demand* demand_;  ///< null where no message costs anything
  std::vector<int> continued_;
  std::vector<int> first_send_;
  std::vector<int> added_into_;
  std::unordered_map<int, std::vector<int>> added_to_;            ///< per send what is added to it
  std::vector<int> uses_;                                         ///< how many sends continue it
  std::vector<int> start_of_section_;                             ///< empty without demand, as the next
  std::vector<Pace> pace_;                                        ///< of the section that starts with it
  std::unordered_map<std::uint64_t, std::vector<int>> entering_;  ///< per chunk and switch, by start
};

/// The deliveries of each chunk that each GPU sends, in their order.
class OnwardDeliveries {
 public:
  OnwardDeliveries(const Demand& demand, std::span<const Delivery> deliveries)
      : num_gpus_(demand.num_gpus()),
        begin_(demand.num_chunks() * num_gpus_ + 1, 0),
        sorted_(deliveries.size()) {
    for (const Delivery& d : deliveries) ++begin_[cell(d.chunk, d.src) + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<int> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t d = 0; d < deliveries.size(); ++d)
      sorted_[index(next[cell(deliveries[d].chunk, deliveries[d].src)]++)] = static_cast<int>(d);
  }
  std::span<const int> operator()(ChunkId chunk, GpuId gpu) const {
    const std::size_t c = cell(chunk, gpu);
    return std::span(sorted_).subspan(index(begin_[c]), index(begin_[c + 1] - begin_[c]));
  }

 private:
  std::size_t cell(ChunkId chunk, GpuId gpu) const { return chunk.index() * num_gpus_ + gpu.index(); }

  std::size_t num_gpus_;
  std::vector<int> begin_;  ///< per cell, and the end
  std::vector<int> sorted_;
};

/// In the order of arrivals, from the sources on: what rests on itself alone causes nothing, however short.
void find_causes_of_copies(const Demand& demand, std::vector<Delivery>& deliveries) {
  using Arrival = std::pair<double, int>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> flying;
  const OnwardDeliveries onward_from(demand, deliveries);
  ChunkGpuTable<char> is_there(demand, 0);
  const auto arrive = [&](ChunkId chunk, GpuId gpu, int by, double at_us) {
    is_there(chunk, gpu) = 1;
    for (const int d : onward_from(chunk, gpu)) {
      Delivery& onward = deliveries[index(d)];
      if (!not_after(at_us, onward.start_us)) continue;
      onward.cause = by;
      flying.push({onward.arrival_us, d});
    }
  };
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const Contribution& contribution = demand.contribution(ChunkId{c});
    if (contribution.reduce) continue;
    const auto sources = contribution.all_sources();
    for (std::size_t s = 0; s < sources.size(); ++s)
      arrive(ChunkId{c}, sources[s], -1,
             contribution.source_ready_us.empty() ? contribution.ready_us : contribution.source_ready_us[s]);
  }
  while (!flying.empty()) {
    const int d = flying.top().second;
    flying.pop();
    const Delivery& landed = deliveries[index(d)];
    if (!is_there(landed.chunk, landed.dst)) arrive(landed.chunk, landed.dst, d, landed.arrival_us);
  }
}

}  // namespace

std::vector<int> continued_sends(const Topology& topology, std::span<const Send> sends) {
  return SwitchPairing(topology, sends).take_continued();
}

Transfers transfers_of(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  SwitchPairing pairing(topology, sends, &demand);
  Transfers transfers{{}, {}, pairing.deliveries()};
  transfers.continued = pairing.take_continued();
  transfers.added_into = pairing.take_added_into();
  find_causes(demand, transfers.deliveries);
  return transfers;
}

void find_causes(const Demand& demand, std::vector<Delivery>& deliveries) {
  for (Delivery& delivery : deliveries) delivery.cause = delivery.before = -1;
  find_causes_of_copies(demand, deliveries);
  if (demand.has_several_sources()) find_causes_of_sums(demand, deliveries);
}

ChunkGpuTable<int> first_arrivals(const Demand& demand, std::span<const Delivery> deliveries) {
  const std::vector<int> sizes =
      demand.has_several_sources() ? sizes_of_sums(demand, deliveries).after : std::vector<int>{};
  ChunkGpuTable<int> first(demand, -1);
  for (std::size_t d = 0; d < deliveries.size(); ++d) {
    if (is_sum(demand, deliveries[d].chunk) &&
        sizes[d] < std::ssize(demand.contribution(deliveries[d].chunk).sources))
      continue;
    int& known = first(deliveries[d].chunk, deliveries[d].dst);
    if (known < 0 || deliveries[d].arrival_us < deliveries[index(known)].arrival_us)
      known = static_cast<int>(d);
  }
  return first;
}

std::vector<char> needed_deliveries(const Demand& demand, std::span<const Delivery> deliveries) {
  const ChunkGpuTable<int> first = first_arrivals(demand, deliveries);
  std::vector<char> needed(deliveries.size(), 0);
  std::vector<int> open;
  const auto need = [&](int d) {
    if (d < 0 || needed[index(d)]) return;
    needed[index(d)] = 1;
    open.push_back(d);
  };
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    for (const GpuId g : demand.destinations(ChunkId{c})) need(first(ChunkId{c}, g));
  }
  while (!open.empty()) {
    const Delivery& delivery = deliveries[index(open.back())];
    open.pop_back();
    need(delivery.cause);
    need(delivery.before);
  }
  return needed;
}

void number_transfers(const Topology& topology, const Demand& demand, std::vector<Send>& sends) {
  const std::vector<int> continued = transfers_of(topology, demand, sends).continued;
  // A store-and-forward switch ends a transfer.
  const auto begins = [&](std::size_t s) {
    const Node& from = topology.node(topology.link(sends[s].link).src);
    return continued[s] < 0 ||
           (from.kind == NodeKind::switch_ && from.forwarding == Forwarding::store_and_forward);
  };
  std::vector<std::size_t> first(sends.size());
  std::vector<char> is_long(sends.size(), 0);
  std::int32_t next_number = 0;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    next_number = std::max(next_number, sends[s].transfer + 1);
    std::size_t root = s;
    while (!begins(root)) root = index(continued[root]);
    first[s] = root;
    if (root != s) is_long[root] = 1;
  }
  std::vector<std::int32_t> number(sends.size(), kNoTransfer);
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (!is_long[first[s]] || sends[s].transfer != kNoTransfer) continue;
    if (number[first[s]] == kNoTransfer) number[first[s]] = next_number++;
    sends[s].transfer = number[first[s]];
  }
}

std::vector<Send> pruned(const Topology& topology, const Demand& demand, std::span<const Send> sends) {
  const Transfers transfers = transfers_of(topology, demand, sends);
  const std::vector<char> needed = needed_deliveries(demand, transfers.deliveries);
  std::unordered_multimap<int, int> added;  // to the send that the sum continues
  for (std::size_t s = 0; s < transfers.added_into.size(); ++s) {
    if (const int into = transfers.added_into[s]; into >= 0)
      added.emplace(transfers.continued[index(into)], static_cast<int>(s));
  }
  std::vector<char> is_kept(sends.size(), 0);
  for (std::size_t d = 0; d < needed.size(); ++d) {
    if (!needed[d]) continue;
    std::vector<int> open = {transfers.deliveries[d].last_send};
    while (!open.empty()) {
      const int s = open.back();
      open.pop_back();
      if (s < 0 || is_kept[index(s)]) continue;
      is_kept[index(s)] = 1;
      open.push_back(transfers.continued[index(s)]);
      const auto [first, last] = added.equal_range(s);
      for (auto in = first; in != last; ++in) open.push_back(in->second);
    }
  }
  std::vector<Send> kept;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (is_kept[s]) kept.push_back(sends[s]);
  }
  return kept;
}

}  // namespace rondo
