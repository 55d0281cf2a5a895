#include "load_potential.hpp"

#include <algorithm>

#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr double kUnknown = -1;

double power(double x, int p) {  // p is a power of two
  for (; p > 1; p /= 2) x *= x;
  return x;
}

}  // namespace

LoadPotential::LoadPotential(const Topology& topology, const std::vector<Hop>& hops)
    : uses_of_resource_(topology.num_links() + topology.shared_bandwidth().size()),
      load_us_(uses_of_resource_.size(), 0.0) {
  std::vector<std::vector<std::size_t>> groups_of(topology.num_links());
  for (std::size_t g = 0; g < topology.shared_bandwidth().size(); ++g) {
    for (const LinkId l : topology.shared_bandwidth()[g].links) groups_of[l.index()].push_back(g);
  }
  for (const Hop& hop : hops) {
    std::vector<UseId>& uses = uses_of_hop_.emplace_back();
    for (const HopLink& part : hop.links) {
      uses.push_back(
          number_of(part.link.index(), part.share * part.us_per_byte, part.share * part.message_us));
      for (const std::size_t g : groups_of[part.link.index()]) {
        uses.push_back(number_of(topology.num_links() + g,
                                 transmission_us(1, topology.shared_bandwidth()[g].bandwidth_GBps), 0));
      }
    }
  }
}

UseId LoadPotential::number_of(std::size_t resource, double us_per_byte, double message_us) {
  for (const UseId known : uses_of_resource_[resource]) {
    if (uses_[known].us_per_byte == us_per_byte && uses_[known].message_us == message_us) return known;
  }
  uses_of_resource_[resource].push_back(static_cast<UseId>(uses_.size()));
  uses_.push_back({resource, us_per_byte, message_us, kUnknown, 0});
  return uses_of_resource_[resource].back();
}

void LoadPotential::forget_growth() {
  for (Use& use : uses_) use.known_bytes = kUnknown;
}

void LoadPotential::set_exponent(int exponent) {
  exponent_ = exponent;
  forget_growth();
}

void LoadPotential::set_scale(double scale_us) {
  scale_us_ = scale_us;
  forget_growth();
}

void LoadPotential::add(std::span<const UseId> uses, double bytes_of_chunk, int chunks) {
  for (const UseId u : uses) {
    const Use& use = uses_[u];
    load_us_[use.resource] += chunks * use.us(bytes_of_chunk);
    for (const UseId same : uses_of_resource_[use.resource]) uses_[same].known_bytes = kUnknown;
  }
}

double LoadPotential::greatest_load_us() const {
  return *std::max_element(load_us_.begin(), load_us_.end());
}

double LoadPotential::of(double load_us) const {
  return power(load_us / scale_us_, exponent_);
}

double LoadPotential::growth(UseId u, double bytes_of_chunk) {
  Use& use = uses_[u];
  if (use.known_bytes != bytes_of_chunk) {
    const double load = load_us_[use.resource];
    use.known_growth = of(load + use.us(bytes_of_chunk)) - of(load);
    use.known_bytes = bytes_of_chunk;
  }
  return use.known_growth;
}

double LoadPotential::slope(double load_us) const {
  const double x = load_us / scale_us_;
  return x > 0 ? power(x, exponent_) / x : 0.0;
}

double LoadPotential::slope(UseId use, double bytes) const {
  return slope(load_us_[uses_[use].resource]) * uses_[use].us(bytes);
}

}  // namespace rondo
