#include "joining_moves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool happens_once_in(Random& random, std::size_t n) {
  return random.below(n) == 0;
}

}  // namespace

JoiningMoves::JoiningMoves(const JoinedSpace& space)
    : space_(space), out_(space.topology().num_gpus()), labels_(out_.size()), follows_(out_.size()) {
  for (int h = 0; h < static_cast<int>(space.num_hops()); ++h) {
    if (space.place_of_hop(h).representative >= 0) out_[space.hop(h).src.index()].push_back(h);
  }
  for (const Link& link : space.topology().links())
    greatest_message_us_ = std::max(greatest_message_us_, link.message_us);
}

void JoiningMoves::begin(const JoinedPlan& plan) {
  plan_ = &plan;
  removed_.assign(plan.chunks.size(), 0);
  start_us_.clear();
  for (const JoinedTransfer& t : plan.transfers) start_us_.push_back(t.start_us);
  added_.clear();
  new_.clear();
  forbidden_.assign(plan.transfers.size(), 0);
  free_us_.assign(space_.topology().num_links(), 0);
  bytes_.clear();
  for (const JoinedTransfer& t : plan.transfers) {
    const double bytes = space_.demand().bytes(plan.chunks_of(t));
    bytes_.push_back(bytes);
    for (const HopLink& part : space_.hop(t.hop).links) {
      double& free = free_us_[part.link.index()];
      free = std::max(free, t.start_us + part.offset_us_of(bytes) + part.occupied_us(bytes));
    }
  }
}

JoinedPlan JoiningMoves::changed() const {
  const std::size_t before = plan_->transfers.size();
  std::vector<std::size_t> order(before + new_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto start = [&](std::size_t t) { return t < before ? start_us_[t] : new_[t - before].start_us; };
  std::ranges::stable_sort(order, {}, start);
  std::vector<std::vector<ChunkId>> more(added_.empty() ? 0 : before);
  for (const Addition& a : added_) more[a.transfer].push_back(a.chunk);
  JoinedPlan plan;
  plan.transfers.reserve(order.size());
  plan.chunks.reserve(plan_->chunks.size() + added_.size());
  std::vector<ChunkId> together;
  for (const std::size_t t : order) {
    if (t >= before) {
      plan.add(new_[t - before].hop, new_[t - before].chunks, start(t));
      continue;
    }
    const JoinedTransfer& old = plan_->transfers[t];
    together.clear();
    for (int i = old.first; i < old.first + old.count; ++i) {
      if (!removed_[index(i)]) together.push_back(plan_->chunks[index(i)]);
    }
    if (!more.empty()) together.insert(together.end(), more[t].begin(), more[t].end());
    if (!together.empty()) plan.add(old.hop, together, start(t));
  }
  return plan;
}

int JoiningMoves::next_on_hop(std::size_t t) const {
  for (std::size_t n = t + 1; n < plan_->transfers.size(); ++n) {
    if (plan_->transfers[n].hop == plan_->transfers[t].hop) return static_cast<int>(n);
  }
  return -1;
}

/// Beyond the hop of the leading transfer, which it has joined, the chunk goes where the first one of that
/// goes; if each has one destination, with what goes over the same hops.
void JoiningMoves::follow(ChunkId chunk, std::size_t leader) {
  const GpuId from = space_.hop(plan_->transfers[leader].hop).dst;
  const auto leading = plan_->chunks_of(leader);
  const bool is_copied = space_.demand().destinations(chunk).size() > 1;
  std::ranges::fill(follows_, 0);  // bit 1: has it of the chunk, bit 2: of the leading one
  follows_[from.index()] = 3;
  for (std::size_t t = leader + 1; t < plan_->transfers.size(); ++t) {
    for (int e = 0; e < static_cast<int>(space_.num_automorphisms()); ++e)
      follow_over(t, e, chunk, leading, is_copied);
  }
}

void JoiningMoves::follow_over(std::size_t t, int element, ChunkId chunk, std::span<const ChunkId> leading,
                               bool is_copied) {
  const JoinedTransfer& next = plan_->transfers[t];
  const char there = follows_[source(next.hop, element).index()];
  if (there == 0) return;
  const int back = space_.group().inverse(element);
  const ChunkId here = space_.image(chunk, back);
  const auto chunks = plan_->chunks_of(next);
  const auto own = std::ranges::find(chunks, here);
  char& beyond = follows_[target(next.hop, element).index()];
  if (is_copied) {
    const bool leads = std::ranges::find(chunks, space_.image(leading.front(), back)) != chunks.end();
    if ((there & 2) != 0 && leads) {
      beyond |= 2;
      if (own == chunks.end()) added_.push_back({t, here});
    } else if ((there & 1) != 0 && own != chunks.end()) {
      removed_[index(next.first) + static_cast<std::size_t>(own - chunks.begin())] = 1;
    }
    if ((there & 1) != 0 && own != chunks.end()) beyond |= 1;
    return;
  }
  if (own == chunks.end()) return;
  beyond = 1;
  for (std::size_t other = 0; other < plan_->transfers.size(); ++other) {
    if (other == t || plan_->transfers[other].hop != next.hop) continue;
    const auto with = plan_->chunks_of(other);
    const bool meets = std::ranges::any_of(
        leading, [&](ChunkId c) { return std::ranges::find(with, space_.image(c, back)) != with.end(); });
    if (!meets) continue;
    removed_[index(next.first) + static_cast<std::size_t>(own - chunks.begin())] = 1;
    added_.push_back({other, here});
    break;
  }
}

/// A random part of the chunks, or all of them.
void JoiningMoves::move_some(std::size_t from, std::size_t to, Random& random) {
  const JoinedTransfer& t = plan_->transfers[from];
  const std::size_t kind = random.below(4);
  const auto count = static_cast<std::size_t>(t.count);
  const std::size_t one = random.below(count);
  const bool further = happens_once_in(random, 2);
  for (std::size_t i = 0; i < count; ++i) {
    const bool moves = kind <= 1 || (kind == 2 && i == one) || (kind == 3 && happens_once_in(random, 2));
    if (!moves) continue;
    const ChunkId chunk = plan_->chunks[index(t.first) + i];
    removed_[index(t.first) + i] = 1;
    added_.push_back({to, chunk});
    if (further) follow(chunk, to);
  }
}

void JoiningMoves::join_two(Random& random) {
  const std::size_t t = random.below(plan_->transfers.size());
  const int next = next_on_hop(t);
  if (next < 0) return;
  if (happens_once_in(random, 2)) {
    move_some(t, index(next), random);
  } else {
    move_some(index(next), t, random);
  }
}

void JoiningMoves::part(std::size_t t, Random& random) {
  const JoinedTransfer& whole = plan_->transfers[t];
  NewTransfer rest{whole.hop, {}, whole.start_us};
  const bool in_order = happens_once_in(random, 2);
  const auto kept = static_cast<int>(random.below(static_cast<std::size_t>(whole.count)));
  for (int i = whole.first; i < whole.first + whole.count; ++i) {
    if (in_order ? i - whole.first <= kept : happens_once_in(random, 2)) continue;
    removed_[index(i)] = 1;
    rest.chunks.push_back(plan_->chunks[index(i)]);
  }
  if (!rest.chunks.empty()) new_.push_back(std::move(rest));
}

void JoiningMoves::relax(GpuId from, double bytes, Random& random) {
  for (const int h : out_[from.index()]) {
    const Hop& hop = space_.hop(h);
    if (follows_[hop.dst.index()]) continue;
    double start_us = labels_[from.index()].at_us;
    for (const HopLink& part : hop.links)
      start_us = std::max(start_us, free_us_[part.link.index()] - part.offset_us_of(bytes));
    const double arrival_us = start_us + hop.duration_us(bytes);
    if (arrival_us >= labels_[hop.dst.index()].at_us || happens_once_in(random, 4)) continue;
    set_label(hop.dst, {arrival_us, -1, h, 0});
  }
}

void JoiningMoves::set_label(GpuId g, const Label& label) {
  labels_[g.index()] = label;
  next_relaxed_us_ = std::min(next_relaxed_us_, label.at_us);
}

/// Of all labels up to that time; the goal's leads nowhere.
void JoiningMoves::relax_until(double t_us, GpuId goal, double bytes, Random& random) {
  while (next_relaxed_us_ <= t_us) {
    next_relaxed_us_ = kNever;
    for (std::size_t g = 0; g < labels_.size(); ++g) {
      if (relaxed_[g] || follows_[g] || g == goal.index()) continue;
      if (labels_[g].at_us > t_us) {
        next_relaxed_us_ = std::min(next_relaxed_us_, labels_[g].at_us);
        continue;
      }
      relaxed_[g] = 1;
      relax(GpuId{g}, bytes, random);
    }
  }
}

/// The earliest path to the target over transfers of the plan, which then take a little longer, or over links
/// once nothing more is on them.
bool JoiningMoves::bring(ChunkId chunk, GpuId goal, Random& random) {
  const Demand& demand = space_.demand();
  const FreeGroup& group = space_.group();
  const double bytes = demand.bytes(chunk);
  std::ranges::fill(labels_, Label{kNever, -1, -1, 0});
  std::ranges::fill(follows_, 0);
  follows_[goal.index()] = 1;
  relaxed_.assign(labels_.size(), 0);
  next_relaxed_us_ = kNever;
  set_label(demand.origin(chunk), {demand.ready_us(chunk), -1, -1, 0});
  // What the goal has sent on does not help.
  for (std::size_t t = 0; t < plan_->transfers.size(); ++t) {
    const JoinedTransfer& there = plan_->transfers[t];
    for (int i = there.first; i < there.first + there.count; ++i) {
      const int element = space_.element_between(plan_->chunks[index(i)], chunk);
      if (element < 0) continue;
      const GpuId to = target(there.hop, element);
      if (to == goal) {
        removed_[index(i)] = 1;
      } else if (follows_[source(there.hop, element).index()]) {
        follows_[to.index()] = 1;
      } else {
        set_label(to, {there.start_us + space_.hop(there.hop).duration_us(bytes_[t]), -1, -1, 0});
      }
    }
  }
  follows_[goal.index()] = 0;
  for (std::size_t t = 0; t < plan_->transfers.size(); ++t) {
    const JoinedTransfer& ride = plan_->transfers[t];
    relax_until(ride.start_us, goal, bytes, random);
    if (forbidden_[t]) continue;
    const double arrival_us = ride.start_us + space_.hop(ride.hop).duration_us(bytes + bytes_[t]);
    int element = 0;
    for (const JoinedSpace::HopImage& image : space_.images_of_hop(ride.hop)) {
      const int e = element++;
      if (follows_[image.dst.index()] || labels_[image.src.index()].at_us > ride.start_us) continue;
      if (arrival_us < labels_[image.dst.index()].at_us)
        set_label(image.dst, {arrival_us, static_cast<int>(t), ride.hop, e});
    }
  }
  relax_until(std::numeric_limits<double>::max(), goal, bytes, random);
  if (labels_[goal.index()].at_us == kNever) return false;
  // Over one of these, another image of the chunk may depend on this one.
  const auto earlier = static_cast<std::ptrdiff_t>(new_.size());
  for (GpuId g = goal; labels_[g.index()].hop >= 0;) {
    const Label label = labels_[g.index()];
    if (label.transfer >= 0) {
      g = source(label.hop, label.element);
      added_.push_back({index(label.transfer), space_.image(chunk, group.inverse(label.element))});
      continue;
    }
    g = space_.hop(label.hop).src;
    const auto [representative, element] = space_.place_of_hop(label.hop);
    const ChunkId image = space_.image(chunk, group.inverse(element));
    const auto known = std::find_if(new_.begin(), new_.begin() + earlier,
                                    [&](const NewTransfer& n) { return n.hop == representative; });
    if (known != new_.begin() + earlier) {
      known->chunks.push_back(image);
    } else {
      const double start_us = label.at_us - space_.hop(label.hop).duration_us(bytes);
      new_.push_back({representative, {image}, start_us});
    }
  }
  return true;
}

/// One chunk of a transfer, or all of them.
void JoiningMoves::bring_otherwise(std::size_t t, Random& random) {
  const JoinedTransfer& left = plan_->transfers[t];
  const std::size_t spared = random.below(4);
  for (char& f : forbidden_) f = spared > 0 && happens_once_in(random, 1 + 4 * spared) ? 1 : 0;
  forbidden_[t] = 1;
  const bool all = happens_once_in(random, 2);
  const std::size_t one = random.below(static_cast<std::size_t>(left.count));
  for (std::size_t i = 0; i < static_cast<std::size_t>(left.count); ++i) {
    if (!all && i != one) continue;
    const ChunkId chunk = plan_->chunks[index(left.first) + i];
    // What has one destination goes there another way from end to end.
    const auto destinations = space_.demand().destinations(chunk);
    const GpuId target = destinations.size() == 1 ? destinations.front() : space_.hop(left.hop).dst;
    bring(chunk, target, random);
  }
}

JoinedPlan JoiningMoves::neighbour_of(const JoinedPlan& plan, Random& random) {
  begin(plan);
  const std::size_t n = plan.transfers.size();
  for (std::size_t moves = happens_once_in(random, 3) ? 2 : 1; moves > 0; --moves) {
    const std::size_t kind = random.below(10);
    const std::size_t t = random.below(n);
    if (kind < 4) {
      join_two(random);
    } else if (kind == 4) {
      part(t, random);
    } else if (kind == 5) {
      start_us_[t] +=
          (random.unit() - 0.5) * plan.quality.finish_us * (happens_once_in(random, 2) ? 0.1 : 0.5);
    } else {
      bring_otherwise(t, random);
      break;  // it counts on the plan as it was
    }
  }
  return changed();
}

JoinedPlan JoiningMoves::joined_runs(const JoinedPlan& plan, const Runs& how) const {
  std::vector<double> held_us(how.waits ? 0 : space_.num_pairs(), 0);
  std::vector<std::size_t> left(space_.num_hops(), 0);  // chunks
  for (const JoinedTransfer& t : plan.transfers) {
    const Hop& hop = space_.hop(t.hop);
    left[index(t.hop)] += static_cast<std::size_t>(t.count);
    const double bytes = space_.demand().bytes(plan.chunks_of(t));
    for (const ChunkId c : plan.chunks_of(t)) {
      if (!how.waits) held_us[space_.pair(c, hop.dst)] = t.start_us + hop.duration_us(bytes);
    }
  }
  struct Run {
    int hop;
    double start_us;
    std::size_t most;
    std::vector<ChunkId> chunks;
  };
  std::vector<Run> runs;
  std::vector<int> open(space_.num_hops(), -1);
  for (const JoinedTransfer& t : plan.transfers) {
    const auto chunks = plan.chunks_of(t);
    const Hop& hop = space_.hop(t.hop);
    const bool counts = !how.costly || std::ranges::any_of(hop.links, [&](const HopLink& part) {
      return part.message_us >= greatest_message_us_;
    });
    int& run = open[index(t.hop)];
    const auto fits = [&] {
      const Run& r = runs[index(run)];
      return r.chunks.size() + chunks.size() <= r.most &&
             (how.waits || std::ranges::all_of(chunks, [&](ChunkId c) {
                return held_us[space_.pair(c, hop.src)] <= r.start_us;
              }));
    };
    if (!counts || run < 0 || !fits()) {
      const double share = std::ceil(how.share * static_cast<double>(left[index(t.hop)]));
      run = static_cast<int>(runs.size());
      runs.push_back({t.hop, t.start_us, std::min(how.most, static_cast<std::size_t>(share)), {}});
    }
    runs[index(run)].chunks.insert(runs[index(run)].chunks.end(), chunks.begin(), chunks.end());
    left[index(t.hop)] -= chunks.size();
  }
  JoinedPlan joined;
  for (const Run& run : runs) joined.add(run.hop, run.chunks, run.start_us);
  return joined;
}

}  // namespace rondo
