#include "rondo/decomp/free_group.hpp"

#include <set>

namespace rondo {

/// Elements are told apart by where they take the first GPU; that and everything else that freedom implies is
/// checked.
class FreeGroupBuilder {
 public:
  FreeGroupBuilder(const Topology& topology, std::span<const Permutation> generators)
      : topology_(topology), generators_(generators) {}

  std::optional<FreeGroup> build() {
    if (!list_elements() || !multiply()) return std::nullopt;
    const auto image_of_gpu = [&](const Permutation& p, std::size_t g) { return image(p, g); };
    const auto image_of_link = [](const Permutation& p, std::size_t l) { return p.link[l].index(); };
    if (!lay_out(topology_.num_gpus(), image_of_gpu, group_.gpus_, group_.gpu_place_) ||
        !lay_out(topology_.num_links(), image_of_link, group_.links_, group_.link_place_) ||
        !keeps_shared_links_apart()) {
      return std::nullopt;
    }
    return std::move(group_);
  }

 private:
  /// An element is a generator after an earlier element.
  struct Step {
    std::size_t generator;
    std::size_t after;
  };

  std::size_t image(const Permutation& p, std::size_t gpu) const {
    return topology_.gpu_of(p.node[topology_.node_of(GpuId{gpu}).index()]).index();
  }

  bool list_elements() {
    std::vector<std::size_t> image_of_first{0};  // per element
    std::vector<int> element(topology_.num_gpus(), -1);
    element[0] = 0;
    for (std::size_t most = 1; most <= generators_.size(); ++most) {
      for (std::size_t e = 0; e < image_of_first.size(); ++e) {
        for (std::size_t t = 0; t < most; ++t) {
          const std::size_t next = image(generators_[t], image_of_first[e]);
          if (element[next] >= 0) continue;
          if (image_of_first.size() == FreeGroup::kMaxOrder) return false;
          element[next] = static_cast<int>(image_of_first.size());
          image_of_first.push_back(next);
          steps_.push_back({t, e});
        }
      }
    }
    group_.order_ = image_of_first.size();
    for (const Permutation& generator : generators_) {
      std::vector<std::uint16_t>& after = then_.emplace_back();
      for (const std::size_t g : image_of_first)
        after.push_back(static_cast<std::uint16_t>(element[image(generator, g)]));
    }
    return true;
  }

  /// The table of products is that of a group if every generator after every element is an element.
  bool multiply() {
    const std::size_t n = group_.order_;
    std::vector<std::uint16_t>& products = group_.products_;
    products.resize(n * n);
    group_.inverse_.assign(n, 0);
    for (std::size_t e = 0; e < n; ++e) {
      for (std::size_t b = 0; b < n; ++b) {
        products[e * n + b] = e == 0 ? static_cast<std::uint16_t>(b)
                                     : then_[steps_[e - 1].generator][products[steps_[e - 1].after * n + b]];
        if (products[e * n + b] == 0) group_.inverse_[e] = static_cast<int>(b);
      }
    }
    for (std::size_t t = 0; t < generators_.size(); ++t) {
      for (std::size_t e = 0; e < n; ++e) {
        const std::size_t row = std::size_t{then_[t][e]} * n;
        for (std::size_t b = 0; b < n; ++b) {
          if (products[row + b] != then_[t][products[e * n + b]]) return false;
        }
      }
    }
    return true;
  }

  /// Whether `count` things fall into orbits on which the generators act as on the elements.
  bool lay_out(std::size_t count, auto image, std::vector<int>& things,
               std::vector<FreeGroup::Place>& places) const {
    places.assign(count, {-1, -1});
    for (std::size_t first = 0; first < count; ++first) {
      if (places[first].orbit >= 0) continue;
      const std::size_t begin = things.size();
      for (std::size_t e = 0; e < group_.order_; ++e) {
        std::size_t where = first;
        if (e > 0) {
          const auto& [generator, after] = steps_[e - 1];
          where = image(generators_[generator], static_cast<std::size_t>(things[begin + after]));
        }
        if (places[where].orbit >= 0) return false;
        places[where] = {static_cast<int>(begin / group_.order_), static_cast<int>(e)};
        things.push_back(static_cast<int>(where));
      }
    }
    for (std::size_t t = 0; t < generators_.size(); ++t) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto [orbit, element] = places[i];
        const FreeGroup::Place expected{orbit, then_[t][static_cast<std::size_t>(element)]};
        if (places[image(generators_[t], i)] != expected) return false;
      }
    }
    return true;
  }

  bool keeps_shared_links_apart() const {
    for (const SharedBandwidth& shared : topology_.shared_bandwidth()) {
      std::set<int> orbits;
      for (const LinkId l : shared.links) {
        if (!orbits.insert(group_.place(l).orbit).second) return false;
      }
    }
    return true;
  }

  const Topology& topology_;
  std::span<const Permutation> generators_;
  FreeGroup group_;
  std::vector<Step> steps_;                       ///< per element but the identity
  std::vector<std::vector<std::uint16_t>> then_;  ///< [generator][element]: their product
};

std::optional<FreeGroup> FreeGroup::generated_by(const Topology& topology,
                                                 std::span<const Permutation> generators) {
  return FreeGroupBuilder(topology, generators).build();
}

std::optional<Hop> FreeGroup::over_representatives(Hop hop) const {
  std::set<LinkId> links;
  for (HopLink& part : hop.links) {
    part.link = link(place(part.link).orbit, 0);
    if (!links.insert(part.link).second) return std::nullopt;
  }
  return hop;
}

FreeGroup FreeGroup::trivial(const Topology& topology) {
  return *generated_by(topology, {});
}

}  // namespace rondo
