#include "holder_table.hpp"

#include <algorithm>
#include <cmath>

namespace rondo {

HolderTable::HolderTable(const HopTable& hops, const Demand& demand, const Deliveries& deliveries,
                         const ListRules& rules)
    : demand_(demand),
      deliveries_(deliveries),
      rules_(rules),
      num_gpus_(hops.num_gpus()),
      near_share_(rules.soonest || std::ranges::any_of(hops.hops(), &Hop::changes) ? 1 : kNearOfChunk),
      near_us_(demand.num_chunks() * num_gpus_, std::numeric_limits<float>::infinity()),
      held_near_us_(rules.soonest ? near_us_.size() : 0, std::numeric_limits<float>::infinity()),
      expected_(held_near_us_.size()),
      holders_(demand.num_chunks(), 0),
      key_(demand.num_chunks(), 0) {
  for (const Contribution& contribution : demand.contributions()) {
    const double bytes = contribution.bytes / demand.chunks_per_contribution();
    const auto known = std::find(class_bytes_.begin(), class_bytes_.end(), bytes);
    size_class_.push_back(static_cast<std::size_t>(known - class_bytes_.begin()));
    if (known == class_bytes_.end()) {
      class_bytes_.push_back(bytes);
      relay_us_.push_back(hops.relay_distance_us(near_share_ * bytes));
      double diameter = 0;
      for (const double d : relay_us_.back()) diameter = std::isfinite(d) ? std::max(diameter, d) : diameter;
      diameter_us_.push_back(diameter);
    }
  }
}

void HolderTable::promise(std::size_t chunk, GpuId receiver, double arrival_us, double now_us) {
  const double* from_receiver = relay_us_from(chunk, receiver);
  float* near = near_us_.data() + chunk * num_gpus_;
  for (std::size_t g = 0; g < num_gpus_; ++g)
    near[g] = std::min(near[g], static_cast<float>(from_receiver[g]));
  if (rules_.soonest) {
    Expectation* expected = expected_.data() + chunk * num_gpus_;
    for (std::size_t g = 0; g < num_gpus_; ++g) {
      const double arrives = arrival_us + from_receiver[g];
      if (arrives < expected[g].arrives_us || expected[g].lands_us <= now_us)
        expected[g] = {arrival_us, arrives};
    }
  }
  ++holders_[chunk];
  update_key(chunk);
}

void HolderTable::land(std::size_t chunk, GpuId gpu) {
  if (!rules_.soonest) return;
  const double* from_gpu = relay_us_from(chunk, gpu);
  float* near = held_near_us_.data() + chunk * num_gpus_;
  for (std::size_t g = 0; g < num_gpus_; ++g) near[g] = std::min(near[g], static_cast<float>(from_gpu[g]));
}

bool HolderTable::better_wait(std::size_t chunk, std::size_t receiver, double duration_us,
                              double t_us) const {
  if (near_us(chunk, receiver) >= duration_us * kNearer) return false;
  if (!rules_.soonest) return true;
  const std::size_t i = chunk * num_gpus_ + receiver;
  // What has landed counts among the holders, from now on.
  const double relayed =
      expected_[i].lands_us > t_us ? expected_[i].arrives_us : std::numeric_limits<double>::infinity();
  return std::min(relayed, t_us + held_near_us_[i]) < t_us + duration_us * kNearer;
}

double HolderTable::progress(std::size_t chunk, GpuId gpu) const {
  const std::size_t i = chunk / static_cast<std::size_t>(demand_.chunks_per_contribution());
  const double* from_gpu = relay_us_from(chunk, gpu);
  double sum_us = 0;
  for (const GpuId g : deliveries_.receivers[i])
    sum_us += std::max(0.0, near_us(chunk, g.index()) - from_gpu[g.index()]);
  return sum_us / (diameter_us_[size_class_[i]] * static_cast<double>(num_gpus_));
}

void HolderTable::update_key(std::size_t chunk) {
  const auto holders = static_cast<std::uint64_t>(holders_[chunk]);
  if (rules_.chunks == ChunkOrder::rarest && !rules_.distance_breaks_ties) {
    key_[chunk] = make_key(holders, 0);
    return;
  }
  const std::size_t i = chunk / static_cast<std::size_t>(demand_.chunks_per_contribution());
  double farthest = 0;
  for (const GpuId g : deliveries_.receivers[i]) farthest = std::max(farthest, near_us(chunk, g.index()));
  const std::uint64_t close = closeness(farthest, diameter_us_[size_class_[i]]);
  key_[chunk] = rules_.chunks == ChunkOrder::rarest ? make_key(holders, close) : make_key(close, holders);
}

}  // namespace rondo
