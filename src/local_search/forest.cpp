#include "forest.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "copies.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/time_slack.hpp"
#include "rondo/model/linear_model.hpp"

namespace rondo {

bool Forest::applies(const PlanSpace& space) {
  const auto is_for_all = [&](const Contribution& c) {
    return c.destinations.size() + 1 == space.topology->num_gpus();
  };
  return space.demand.kind() == DemandKind::multicast && space.relay_bytes.empty() &&
         std::ranges::all_of(space.demand.contributions(), is_for_all) &&
         std::ranges::none_of(space.hops, &Hop::changes);
}

Forest::Forest(const PlanSpace& space, Reading reading)
    : space_(space),
      reading_(reading),
      leaving_(space.into.size()),
      timetable_(*space.topology, reading, space.concurrency),
      trees_(space.demand.num_chunks()),
      ends_us_(trees_.size(), 0),
      load_us_(space.topology->num_links(), 0),
      price_(space.topology->num_links(), 0),
      hop_price_(space.hops.size(), 0),
      bringer_(space.into.size(), kNobody),
      options_(space.into.size()) {
  for (std::size_t h = 0; h < space.hops.size(); ++h)
    leaving_[space.hops[h].src.index()].push_back(static_cast<int>(h));
}

Forest::Forest(const TransferPlan& plan, const PlanSpace& space) : Forest(space, Reading::forwards) {
  std::vector<Tree> trees = trees_of(plan, space);
  for (std::size_t c = 0; c < trees.size(); ++c) put_back(c, std::move(trees[c]));
}

std::vector<Forest::Tree> Forest::trees_of(const TransferPlan& plan, const PlanSpace& space) {
  const CopyTrees copies(plan, space);
  std::vector<std::size_t> first_link(plan.transfers.size(), 0);
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const int original = copies.original(static_cast<int>(i));
    if (original != static_cast<int>(i)) continue;
    copies.for_each(original, [&](const CopyTrees::Member& member) {
      first_link[index(member.transfer)] = member.first_link;
    });
  }
  std::vector<Tree> trees(space.demand.num_chunks());
  std::vector<int> position(plan.transfers.size());
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const PlannedTransfer& t = plan.transfers[i];
    Tree& tree = trees[t.chunk.index()];
    position[i] = static_cast<int>(tree.size());
    tree.push_back({t.hop, t.cause < 0 ? kOrigin : position[index(t.cause)],
                    t.copy_of < 0 ? -1 : position[index(t.copy_of)], first_link[i], t.start_us,
                    space.arrival_us(t)});
  }
  return trees;
}

void Forest::share_links_with(Forest& other, double horizon_us) {
  other_ = &other;
  other.other_ = this;
  horizon_us_ = other.horizon_us_ = horizon_us;
}

double Forest::latest_us() const {
  return *std::ranges::max_element(ends_us_);
}

void Forest::reserve(std::size_t chunk, const Branch& branch, double sign) {
  const Hop& hop = hop_of(branch);
  const double bytes = space_.demand.bytes(ChunkId{chunk});
  const auto note = [&](InsertionTimetable& timetable, double start_us) {
    if (sign > 0) {
      timetable.reserve(hop, bytes, start_us, branch.first_link);
    } else {
      timetable.release(hop, bytes, start_us, branch.first_link);
    }
  };
  note(timetable_, branch.start_us);
  if (other_ != nullptr) note(other_->timetable_, horizon_us_ - branch.arrival_us);
  for (std::size_t i = branch.first_link; i < hop.links.size(); ++i)
    load_us_[hop.links[i].link.index()] += sign * hop.links[i].load_us(bytes);
}

Forest::Tree Forest::take_out(std::size_t chunk) {
  for (const Branch& branch : trees_[chunk]) reserve(chunk, branch, -1);
  ends_us_[chunk] = 0;
  return std::exchange(trees_[chunk], {});
}

void Forest::put_back(std::size_t chunk, Tree tree) {
  for (const Branch& branch : tree) {
    reserve(chunk, branch, 1);
    ends_us_[chunk] = std::max(ends_us_[chunk], branch.arrival_us);
  }
  trees_[chunk] = std::move(tree);
}

void Forest::set_prices(std::vector<double> price) {
  price_ = std::move(price);
  priced_bytes_ = -1;
}

double Forest::price_of_hop(const Hop& hop, std::size_t first_link, double bytes) const {
  double sum = 0;
  for (std::size_t i = first_link; i < hop.links.size(); ++i)
    sum += price_[hop.links[i].link.index()] * hop.links[i].load_us(bytes);
  return sum;
}

/// Most trees that grow at the same prices are of chunks of the same size.
void Forest::price_hops(double bytes) {
  if (bytes == priced_bytes_) return;
  priced_bytes_ = bytes;
  for (std::size_t h = 0; h < space_.hops.size(); ++h) hop_price_[h] = price_of_hop(space_.hops[h], 0, bytes);
}

double Forest::price_of(std::size_t chunk) const {
  const double bytes = space_.demand.bytes(ChunkId{chunk});
  double sum = 0;
  for (const Branch& branch : trees_[chunk]) sum += price_of_hop(hop_of(branch), branch.first_link, bytes);
  return sum;
}

void Forest::offer_hop(int h, double held_from_us) {
  const Hop& hop = space_.hops[index(h)];
  Option& option = options_[to(hop).index()];
  const double later_us = hop.duration_us(bytes_) + dearness_ * hop_price_[index(h)];
  if (held_from_us + later_us >= option.cost_us) return;
  const double until = option.cost_us - later_us;
  const double start = timetable_.earliest_start(hop, bytes_, held_from_us, 0, until + time_slack_us(until));
  if (start + later_us >= option.cost_us) return;
  option = {start + later_us,
            {h, bringer_[from(hop).index()], -1, 0, start, start + hop.duration_us(bytes_)}};
}

/// Over hop `h`, what switches copy of a branch.
void Forest::offer_copy(int h, int position) {
  const Branch& sent = growing_[index(position)];
  const Hop& hop = space_.hops[index(h)];
  if (!may_be_copied(*space_.topology, hop_of(sent), hop)) return;
  Option& option = options_[hop.dst.index()];
  const std::size_t first_link = links_in_common(hop_of(sent), hop);
  const double arrival = sent.start_us + hop.duration_us(bytes_);
  const double cost = arrival + dearness_ * price_of_hop(hop, first_link, bytes_);
  if (cost >= option.cost_us) return;
  if (!timetable_.is_free(hop, bytes_, sent.start_us, first_link)) return;
  const int original = sent.copy_of < 0 ? position : sent.copy_of;
  if (!enters_anew(hop, first_link, original)) return;
  option = {cost, {h, sent.cause, original, first_link, sent.start_us, arrival}};
}

bool Forest::enters_anew(const Hop& hop, std::size_t first_link, int original) const {
  return std::ranges::none_of(growing_, [&](const Branch& branch) {
    const bool is_of_tree = &branch == &growing_[index(original)] || branch.copy_of == original;
    return is_of_tree && enters_again(*space_.topology, hop, first_link, hop_of(branch));
  });
}

void Forest::grow_from_gpu(GpuId gpu, double held_from_us) {
  for (const int h : out_of(gpu)) {
    if (bringer_[to(space_.hops[index(h)]).index()] == kNobody) offer_hop(h, held_from_us);
  }
}

void Forest::grow_from_branch(int position) {
  const Hop& hop = hop_of(growing_[index(position)]);
  if (!may_copy() || hop.links.size() < 2) return;
  for (const int h : out_of(hop.src)) {
    if (bringer_[space_.hops[index(h)].dst.index()] == kNobody) offer_copy(h, position);
  }
}

/// The links of its best option are taken by now, or the tree has come to where they lead.
void Forest::look_again(GpuId gpu) {
  options_[gpu.index()].cost_us = kInfinity;
  for (const int h : into(gpu)) {
    const int bringer = bringer_[from(space_.hops[index(h)]).index()];
    if (bringer != kNobody) offer_hop(h, bringer < 0 ? ready_us_ : growing_[index(bringer)].arrival_us);
  }
  if (!may_copy()) return;
  for (std::size_t i = 0; i < growing_.size(); ++i) {
    const Hop& hop = hop_of(growing_[i]);
    if (hop.links.size() < 2) continue;
    for (const int h : space_.hops_between(hop.src, gpu)) offer_copy(h, static_cast<int>(i));
  }
}

void Forest::grow(std::size_t chunk, double dearness) {
  const ChunkId c{chunk};
  grow(chunk, {space_.demand.origin(c), space_.demand.ready_us(c)}, dearness);
}

void Forest::grow(std::size_t chunk, const Root& root, double dearness) {
  bytes_ = space_.demand.bytes(ChunkId{chunk});
  ready_us_ = root.ready_us;
  dearness_ = dearness;
  price_hops(bytes_);
  growing_.clear();
  std::ranges::fill(bringer_, kNobody);
  for (Option& option : options_) option.cost_us = kInfinity;
  bringer_[root.gpu.index()] = kOrigin;
  grow_from_gpu(root.gpu, ready_us_);
  for (std::size_t left = bringer_.size() - 1; left > 0;) {
    std::size_t to = bringer_.size();
    for (std::size_t g = 0; g < bringer_.size(); ++g) {
      if (bringer_[g] != kNobody || !std::isfinite(options_[g].cost_us)) continue;
      if (to == bringer_.size() || options_[g].cost_us < options_[to].cost_us) to = g;
    }
    const Branch next = options_[to].branch;
    const bool is_new = next.copy_of < 0 || enters_anew(hop_of(next), next.first_link, next.copy_of);
    if (!is_new || !timetable_.is_free(hop_of(next), bytes_, next.start_us, next.first_link)) {
      look_again(GpuId{to});
      continue;
    }
    reserve(chunk, next, 1);
    const int position = static_cast<int>(growing_.size());
    growing_.push_back(next);
    bringer_[to] = position;
    --left;
    grow_from_branch(position);
    grow_from_gpu(GpuId{to}, next.arrival_us);
  }
  trees_[chunk] = growing_;
  ends_us_[chunk] = 0;
  for (const Branch& branch : growing_) ends_us_[chunk] = std::max(ends_us_[chunk], branch.arrival_us);
}

TransferPlan Forest::plan_of(const std::vector<Tree>& trees) {
  TransferPlan plan;
  std::vector<int> position;
  for (std::size_t c = 0; c < trees.size(); ++c) {
    const Tree& tree = trees[c];
    position.assign(tree.size(), -1);
    const auto add = [&](std::size_t i) {
      const Branch& b = tree[i];
      position[i] = static_cast<int>(plan.transfers.size());
      plan.transfers.push_back({ChunkId{c}, b.hop, b.cause < 0 ? -1 : position[index(b.cause)],
                                b.copy_of < 0 ? -1 : position[index(b.copy_of)], b.start_us});
    };
    // Copies directly behind their originals.
    for (std::size_t i = 0; i < tree.size(); ++i) {
      if (tree[i].copy_of >= 0) continue;
      add(i);
      for (std::size_t j = i + 1; j < tree.size(); ++j) {
        if (tree[j].copy_of == static_cast<int>(i)) add(j);
      }
    }
  }
  return plan;
}

}  // namespace rondo
