#include "rondo/local_search/joined_space.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "hops_by_path.hpp"
#include "rondo/core/index.hpp"

namespace rondo {

JoinedSpace::JoinedSpace(const PlanSpace& whole)
    : JoinedSpace(*up_to(FreeGroup::trivial(*whole.topology), whole)) {}

std::optional<JoinedSpace> JoinedSpace::up_to(const FreeGroup& group, PlanSpace whole) {
  JoinedSpace space(std::move(whole), group);
  if (!space.find_images()) return std::nullopt;
  space.place_chunks();
  space.place_hops();
  return space;
}

JoinedSpace JoinedSpace::with_demand(Demand demand) const {
  JoinedSpace space = *this;
  space.whole_.demand = std::move(demand);
  space.place_chunks();
  return space;
}

/// Equal contributions go to equal ones, the first to the first.
bool JoinedSpace::find_images() {
  const std::vector<Contribution>& parts = whole_.demand.contributions();
  images_.assign(parts.size() * group_.order(), 0);
  if (group_.order() == 1) {
    std::iota(images_.begin(), images_.end(), std::size_t{0});
    return true;
  }
  if (static_cast<double>(group_.order()) * whole_.demand.with_chunks(1).num_deliveries() > kMostImages)
    return false;
  using Key = std::tuple<GpuId, std::vector<GpuId>, double, double, std::size_t>;
  std::map<Key, std::size_t> known;
  std::vector<std::size_t> equal(parts.size(), 0);  // before it
  const auto key_of = [](const Contribution& part, GpuId origin, std::vector<GpuId> destinations,
                         std::size_t before) {
    return Key{origin, std::move(destinations), part.bytes, part.ready_us, before};
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto at = [&] { return key_of(parts[i], parts[i].origin, parts[i].destinations, equal[i]); };
    while (!known.emplace(at(), i).second) ++equal[i];
  }
  for (std::size_t e = 0; e < group_.order(); ++e) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<GpuId> destinations = parts[i].destinations;
      for (GpuId& g : destinations) g = group_.image(g, static_cast<int>(e));
      std::ranges::sort(destinations);
      const GpuId origin = group_.image(parts[i].origin, static_cast<int>(e));
      const auto found = known.find(key_of(parts[i], origin, std::move(destinations), equal[i]));
      if (found == known.end()) return false;
      images_[e * parts.size() + i] = found->second;
    }
  }
  return true;
}

void JoinedSpace::place_hops() {
  HopsByPath hops(whole_);
  const auto image_of = [&](std::vector<LinkId> path, int element) {
    for (LinkId& link : path) link = group_.image(link, element);
    return hops.of(path);
  };
  for (std::size_t h = 0; h < whole_.hops.size(); ++h) {
    const int element = group_.place(whole_.hops[h].src).element;
    const int representative = image_of(path_of(whole_.hops[h]), group_.inverse(element));
    hop_place_.push_back({representative, element});
  }
  hop_images_.resize(whole_.hops.size());
  for (std::size_t h = 0; h < hop_images_.size(); ++h) {
    if (index(hop_place_[h].representative) != h) continue;
    const std::vector<LinkId> path = path_of(whole_.hops[h]);
    for (int e = 0; e < static_cast<int>(group_.order()); ++e) {
      const int image = image_of(path, e);
      hop_images_[h].push_back({image, whole_.hops[index(image)].src, whole_.hops[index(image)].dst});
      if (index(image) >= hop_place_.size()) hop_place_.push_back({static_cast<int>(h), e});
    }
  }
  for (std::size_t h = 0; h < whole_.hops.size(); ++h) {
    std::optional<Hop> over = group_.over_representatives(whole_.hops[h]);
    if (!over) hop_place_[h].representative = -1;
    over_representatives_.push_back(over ? *std::move(over) : whole_.hops[h]);
  }
  hop_images_.resize(whole_.hops.size());
}

void JoinedSpace::place_chunks() {
  places_.clear();
  for (std::size_t c = 0; c < whole_.demand.num_chunks(); ++c) {
    const int element = group_.place(whole_.demand.origin(ChunkId{c})).element;
    places_.push_back({image(ChunkId{c}, group_.inverse(element)).index(), element});
  }
}

}  // namespace rondo
