#include "slots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/rate_account.hpp"

namespace rondo {
namespace {

/// How often the chunks on overloaded links are gone through, and how many looks that may take: one at each
/// chunk, and of those with one at each slot.
constexpr int kMostSweeps = 2000;
constexpr double kMostLooks = 2e8;
/// It ends where more than this part of the chunks is on overloaded links, and has not become less for so
/// many sweeps.
constexpr double kManyWrong = 0.05;
constexpr int kVainSweeps = 40;
/// Of the annealing, in loads of a mean chunk, squared.
constexpr double kFirstTemperature = 0.2;
constexpr double kLastTemperature = 0.1;
/// A chunk does not go back to a slot for as many moves, and up to as many more.
constexpr std::size_t kBarred = 20;
/// Of the potential by which chunks are dealt first.
constexpr int kExponent = 4;
/// What must not be against what is better not.
constexpr double kForbidden = 1e3;
constexpr double kLoadRounding = 1e-9;

/// What a chunk takes of a link, a group of links, or the transfers that a link may carry at a time.
struct SlotUse {
  std::size_t resource;
  double amount;
  double first_us;  ///< after the start of the chunk, when the first and the last of its links there begin
  double last_us;
};

/// The links and groups of a topology, then once more the links, whose transfers count.
class SlotResources {
 public:
  SlotResources(const Topology& topology, int concurrency)
      : links_(topology.num_links()),
        groups_(topology.shared_bandwidth().size()),
        of_link_(links_),
        is_counted_(links_, 0) {
    for (std::size_t g = 0; g < groups_; ++g) {
      const SharedBandwidth& group = topology.shared_bandwidth()[g];
      for (const LinkId l : group.links) of_link_[l.index()].push_back({g, group.bandwidth_GBps});
    }
    for (std::size_t l = 0; l < links_ && concurrency != kAnyConcurrency; ++l) {
      const Link& link = topology.link(LinkId{l});
      is_counted_[l] = topology.is_gpu(link.src) || topology.is_gpu(link.dst) ? 1 : 0;
    }
  }

  std::size_t size() const { return 2 * links_ + groups_; }
  bool is_count(std::size_t resource) const { return resource >= links_ + groups_; }
  /// Each resource once.
  void append_uses(const Hop& hop, double bytes, std::vector<SlotUse>& uses) const {
    const std::size_t first = uses.size();
    const auto add = [&](std::size_t resource, double amount, double offset_us) {
      for (SlotUse& use : std::span(uses).subspan(first)) {
        if (use.resource != resource) continue;
        use.amount += amount;
        use.last_us = offset_us;
        return;
      }
      uses.push_back({resource, amount, offset_us, offset_us});
    };
    for (const HopLink& part : hop.links) {
      const std::size_t l = part.link.index();
      add(l, part.load_us(bytes), part.offset_us);
      for (const auto& [group, GBps] : of_link_[l])
        add(links_ + group, transmission_us(bytes, GBps), part.offset_us);
      if (is_counted_[l]) add(links_ + groups_ + l, 1, part.offset_us);
    }
  }

 private:
  struct Membership {
    std::size_t group;
    double GBps;
  };
  std::size_t links_;
  std::size_t groups_;
  std::vector<std::vector<Membership>> of_link_;
  std::vector<char> is_counted_;
};

const Hop& only_hop(const std::vector<Hop>& hops, const RoutedChunks& routed, std::size_t chunk) {
  return hops[index(routed.routes[index(routed.route_of_chunk[chunk])].hops.front())];
}

class SlotDeal {
 public:
  SlotDeal(const Topology& topology, const std::vector<Hop>& hops, const Demand& demand,
           const RoutedChunks& routed, int concurrency, std::uint64_t seed);

  void deal();
  void improve(const Deadline& deadline);
  /// Nothing where a link has more transfers in a slot than allowed.
  std::optional<std::vector<int>> result() const;

 private:
  std::span<const SlotUse> uses(std::size_t chunk) const {
    return std::span(uses_).subspan(first_use_[chunk], first_use_[chunk + 1] - first_use_[chunk]);
  }
  double& load(std::size_t resource, std::size_t slot) { return loads_[resource * num_slots_ + slot]; }
  double load(std::size_t resource, std::size_t slot) const { return loads_[resource * num_slots_ + slot]; }
  /// What the resource may carry in the slot.
  double part(std::size_t resource, std::size_t slot) const {
    return resources_.is_count(resource) ? most_transfers_ : greatest_load_ * share_of_slot_[slot];
  }
  double penalty(std::size_t resource, std::size_t slot, double amount) const {
    const double excess = std::max(0.0, amount - part(resource, slot));
    return excess <= kLoadRounding * part(resource, slot) ? 0 : excess * excess;
  }
  /// Of the penalties, if the chunk came into the slot, or left it. `enough`: more need not be told apart.
  double growth(std::size_t chunk, std::size_t slot, double sign,
                double enough = std::numeric_limits<double>::infinity()) const {
    double sum = 0;
    for (const SlotUse& use : uses(chunk)) {
      const double before = load(use.resource, slot);
      sum += penalty(use.resource, slot, before + sign * use.amount) - penalty(use.resource, slot, before);
      if (sum > enough) break;
    }
    return sum;
  }
  /// Chunks on links that have more than their part.
  std::vector<std::size_t> wrong_ones() const {
    std::vector<std::size_t> wrong;
    for (std::size_t c = 0; c < slot_.size(); ++c) {
      const std::size_t slot = slot_[c];
      if (std::ranges::any_of(uses(c), [&](const SlotUse& use) {
            return penalty(use.resource, slot, load(use.resource, slot)) > 0;
          }))
        wrong.push_back(c);
    }
    return wrong;
  }
  double potential(std::size_t chunk, std::size_t slot) const {
    double sum = kForbidden * growth(chunk, slot, 1);
    for (const SlotUse& use : uses(chunk))
      sum += std::pow((load(use.resource, slot) + use.amount) / part(use.resource, slot), kExponent);
    return sum;
  }
  void put(std::size_t chunk, std::size_t slot, double sign) {
    for (const SlotUse& use : uses(chunk)) load(use.resource, slot) += sign * use.amount;
  }
  bool move(std::size_t chunk, double temperature);

  SlotResources resources_;
  Random random_;
  std::vector<SlotUse> uses_;  ///< of all chunks, in loads of a mean chunk
  std::vector<std::size_t> first_use_{0};
  double most_transfers_;
  double greatest_load_ = 0;
  std::size_t num_slots_ = 1;
  std::vector<double> share_of_slot_;
  std::vector<double> loads_;
  std::vector<std::size_t> slot_;          ///< per chunk
  std::vector<std::size_t> barred_until_;  ///< per chunk and slot, in moves
  std::size_t moves_ = 0;
};

SlotDeal::SlotDeal(const Topology& topology, const std::vector<Hop>& hops, const Demand& demand,
                   const RoutedChunks& routed, int concurrency, std::uint64_t seed)
    : resources_(topology, concurrency), random_(seed), most_transfers_(concurrency) {
  std::vector<double> sums(resources_.size(), 0);
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    resources_.append_uses(only_hop(hops, routed, c), demand.bytes(ChunkId{c}), uses_);
    first_use_.push_back(uses_.size());
  }
  double most_transfers = 1;
  for (const SlotUse& use : uses_) {
    double& sum = sums[use.resource];
    sum += use.amount;
    (resources_.is_count(use.resource) ? most_transfers : greatest_load_) =
        std::max(resources_.is_count(use.resource) ? most_transfers : greatest_load_, sum);
  }
  num_slots_ = static_cast<std::size_t>(std::ceil(most_transfers / most_transfers_));
  // Slots of 8 and of 7 transfers, say, have so many parts of the time.
  const auto transfers = static_cast<std::size_t>(most_transfers);
  for (std::size_t s = 0; s < num_slots_; ++s) {
    const std::size_t here = transfers / num_slots_ + (s < transfers % num_slots_ ? 1 : 0);
    share_of_slot_.push_back(static_cast<double>(here) / most_transfers);
  }
  const double mean_load = greatest_load_ / most_transfers;
  for (SlotUse& use : uses_) {
    if (!resources_.is_count(use.resource)) use.amount /= mean_load;
  }
  greatest_load_ = most_transfers;
  loads_.assign(resources_.size() * num_slots_, 0);
  slot_.assign(demand.num_chunks(), 0);
  barred_until_.assign(demand.num_chunks() * num_slots_, 0);
}

void SlotDeal::deal() {
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c < slot_.size(); ++c) order.push_back(c);
  random_.shuffle(std::span(order));
  for (const std::size_t chunk : order) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < num_slots_; ++s) {
      const double cost = potential(chunk, s);
      if (cost >= least) continue;
      least = cost;
      slot_[chunk] = s;
    }
    put(chunk, slot_[chunk], 1);
  }
}

/// To the slot that suffers least; more than now with a probability that the temperature sets. Whether
/// anything was wrong with where it is.
bool SlotDeal::move(std::size_t chunk, double temperature) {
  const std::size_t from = slot_[chunk];
  const double gain = -growth(chunk, from, -1);
  if (gain <= 0) return false;
  ++moves_;
  double least = std::numeric_limits<double>::infinity();
  std::size_t to = from;
  std::size_t ties = 0;
  for (std::size_t s = 0; s < num_slots_; ++s) {
    if (s == from || barred_until_[chunk * num_slots_ + s] > moves_) continue;
    const double cost = growth(chunk, s, 1, least + kLoadRounding);
    if (cost > least + kLoadRounding) continue;
    if (cost < least - kLoadRounding) ties = 0;
    if (random_.below(++ties) != 0) continue;
    least = cost;
    to = s;
  }
  if (to == from) return true;
  if (least > gain && random_.unit() > std::exp((gain - least) / temperature)) return true;
  barred_until_[chunk * num_slots_ + from] = moves_ + kBarred + random_.below(kBarred);
  put(chunk, from, -1);
  put(chunk, to, 1);
  slot_[chunk] = to;
  return true;
}

void SlotDeal::improve(const Deadline& deadline) {
  std::vector<std::size_t> wrong = wrong_ones();
  const auto looks = static_cast<double>(slot_.size() + wrong.size() * num_slots_);
  const int sweeps = static_cast<int>(std::clamp(kMostLooks / looks, 1.0, double{kMostSweeps}));
  std::size_t least_wrong = slot_.size() + 1;
  int sweep_of_least = 0;
  for (int sweep = 0; sweep < sweeps && !wrong.empty() && !deadline.is_over(); ++sweep) {
    if (wrong.size() < least_wrong) {
      least_wrong = wrong.size();
      sweep_of_least = sweep;
    }
    const bool are_many = static_cast<double>(least_wrong) > kManyWrong * static_cast<double>(slot_.size());
    if (are_many && sweep - sweep_of_least >= kVainSweeps) return;
    random_.shuffle(std::span(wrong));
    const double passed = static_cast<double>(sweep) / sweeps;
    const double temperature = kFirstTemperature * std::pow(kLastTemperature / kFirstTemperature, passed);
    for (const std::size_t chunk : wrong) move(chunk, temperature);
    wrong = wrong_ones();
  }
}

std::optional<std::vector<int>> SlotDeal::result() const {
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    for (std::size_t s = 0; s < num_slots_ && resources_.is_count(r); ++s) {
      if (load(r, s) > most_transfers_) return std::nullopt;
    }
  }
  std::vector<int> slots;
  for (const std::size_t s : slot_) slots.push_back(static_cast<int>(s));
  return slots;
}

}  // namespace

std::optional<std::vector<int>> deal_to_slots(const Topology& topology, const std::vector<Hop>& hops,
                                              const Demand& demand, const RoutedChunks& routed,
                                              int concurrency, std::uint64_t seed, const Deadline& deadline) {
  SlotDeal slots(topology, hops, demand, routed, concurrency, seed);
  slots.deal();
  slots.improve(deadline);
  if (deadline.is_over()) return std::nullopt;
  return slots.result();
}

Schedule in_slots(const Topology& topology, const std::vector<Hop>& hops, const std::vector<Hop>& real,
                  const Demand& demand, const RoutedChunks& routed, const std::vector<int>& slot_of_chunk) {
  const SlotResources resources(topology, kAnyConcurrency);
  std::vector<std::vector<std::size_t>> slots;
  for (std::size_t c = 0; c < slot_of_chunk.size(); ++c) {
    slots.resize(std::max(slots.size(), index(slot_of_chunk[c]) + 1));
    slots[index(slot_of_chunk[c])].push_back(c);
  }
  Schedule schedule;
  std::vector<double> free_from(resources.size(), 0);
  for (const std::vector<std::size_t>& slot : slots) {
    double occupied_us = 0;
    double start_us = 0;
    std::vector<double> loads(resources.size(), 0);
    std::vector<SlotUse> uses;
    for (const std::size_t c : slot) {
      const ChunkId chunk{c};
      start_us = std::max(start_us, demand.ready_us(chunk));
      const std::size_t first = uses.size();
      resources.append_uses(only_hop(hops, routed, c), demand.bytes(chunk), uses);
      for (const SlotUse& use : std::span(uses).subspan(first)) {
        occupied_us = std::max(occupied_us, loads[use.resource] += use.amount);
        // Links that are far from the GPU begin, and end, later.
        start_us = std::max(start_us, free_from[use.resource] - use.first_us);
      }
    }
    for (const std::size_t c : slot) {
      const ChunkId chunk{c};
      const double bytes = demand.bytes(chunk);
      const Hop& whole = only_hop(real, routed, c);
      const Hop hop = slowed(whole, std::max(1.0, occupied_us / whole.links.front().occupied_us(bytes)));
      append_sends(topology, hop, chunk, bytes, start_us, schedule.sends);
      schedule.finish_us = std::max(schedule.finish_us, start_us + hop.duration_us(bytes));
    }
    for (const SlotUse& use : uses) {
      double& end = free_from[use.resource];
      end = std::max(end, start_us + use.last_us + occupied_us);
    }
  }
  canonicalise(schedule);
  return schedule;
}

}  // namespace rondo
