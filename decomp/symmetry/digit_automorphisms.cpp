#include "digit_automorphisms.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "fabric_graph.hpp"

namespace rondo {
namespace {

bool alike(const Node& a, const Node& b) {
  return a.kind == b.kind && node_figures(a) == node_figures(b);
}

/// Extends a permutation of the GPUs to the switches. Those that may stay where they are, as the spines of a
/// fat tree may when the GPUs of its leaves change places, stay, or are shifted in cycles of `cycle`
/// switches: links between switches that stay would stay too.
class Extension {
 public:
  Extension(const Topology& topology, const std::vector<int>& gpus, std::size_t cycle)
      : topology_(topology), cycle_(cycle), image_(topology.num_nodes()), taken_(topology.num_nodes(), 0) {
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      image_[topology.node_of(GpuId{g}).index()] = topology.node_of(GpuId{gpus[g]});
    }
  }

  /// Per node its image; nothing where no switches fit.
  std::optional<std::vector<NodeId>> nodes() {
    if (!map_switches()) return std::nullopt;
    return std::move(image_);
  }

 private:
  NodeId image(NodeId n) const { return image_[n.index()]; }

  /// Breadth first from the GPUs: the image of a switch is a like one beside the images of its neighbours.
  bool map_switches() {
    std::vector<NodeId> queue;
    for (std::size_t g = 0; g < topology_.num_gpus(); ++g) queue.push_back(topology_.node_of(GpuId{g}));
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const LinkId l : topology_.out_links(queue[i])) {
        const NodeId next = topology_.link(l).dst;
        if (image(next).valid()) {
          if (!linked_alike(topology_.link(l), image(queue[i]), image(next))) return false;
          continue;
        }
        if (!map_switch(next, l)) return false;
        queue.push_back(next);
      }
    }
    return queue.size() == topology_.num_nodes();
  }

  bool map_switch(NodeId n, LinkId reached_over) {
    std::vector<NodeId> like;
    for (const LinkId l : topology_.out_links(image(topology_.link(reached_over).src))) {
      const NodeId target = topology_.link(l).dst;
      if (!topology_.is_gpu(target) && std::ranges::find(like, target) == like.end() && fits(n, target))
        like.push_back(target);
    }
    const NodeId target = target_of(n, like);
    if (!target.valid() || taken_[target.index()]) return false;
    taken_[target.index()] = 1;
    image_[n.index()] = target;
    return true;
  }

  NodeId target_of(NodeId n, const std::vector<NodeId>& like) const {
    const auto itself = std::ranges::find(like, n);
    if (cycle_ > 1 && itself != like.end() && like.size() % cycle_ == 0) {
      const auto at = static_cast<std::size_t>(itself - like.begin());
      return like[at - at % cycle_ + (at + 1) % cycle_];
    }
    const auto free = std::ranges::find_if(like, [&](NodeId target) { return !taken_[target.index()]; });
    return free == like.end() ? NodeId{} : *free;
  }

  bool fits(NodeId n, NodeId target) const {
    if (!alike(topology_.node(n), topology_.node(target)) ||
        topology_.in_links(n).size() != topology_.in_links(target).size()) {
      return false;
    }
    return std::ranges::all_of(topology_.in_links(n), [&](LinkId l) {
      const Link& link = topology_.link(l);
      return !image(link.src).valid() || linked_alike(link, image(link.src), target);
    });
  }

  /// Whether a link like `link` leads from `src` to `dst`.
  bool linked_alike(const Link& link, NodeId src, NodeId dst) const {
    const auto out = topology_.out_links(src);
    const auto in = topology_.in_links(dst);
    return std::ranges::any_of(out.size() < in.size() ? out : in, [&](LinkId l) {
      const Link& other = topology_.link(l);
      return other.src == src && other.dst == dst && alike(link, other);
    });
  }

  const Topology& topology_;
  std::size_t cycle_;
  std::vector<NodeId> image_;  ///< per node
  std::vector<char> taken_;    ///< per node: some switch's image
};

/// Whether every link comes back after `order` steps, and not before.
bool are_cycles_of(std::size_t order, const std::vector<LinkId>& image) {
  for (std::size_t first = 0; first < image.size(); ++first) {
    std::size_t steps = 1;
    for (LinkId l = image[first]; l.index() != first && steps <= order; ++steps) l = image[l.index()];
    if (steps != order) return false;
  }
  return true;
}

/// One digit of the GPU numbers, (number / stride) mod period, and its automorphism: a cyclic shift by one
/// or, where it has an end and a beginning as in a mesh, a reflection.
struct Digit {
  int stride;
  int period;
  bool is_reflected;

  int order() const { return is_reflected ? 2 : period; }
  int image(int value) const { return is_reflected ? period - 1 - value : (value + 1) % period; }
};

class DigitSearch {
 public:
  DigitSearch(const Topology& topology, const DemandPattern& pattern)
      : topology_(topology), pattern_(pattern), links_(topology) {
    const int n = static_cast<int>(topology.num_gpus());
    for (int d = 1; d <= n; ++d) {
      if (n % d == 0) divisors_.push_back(d);
    }
  }

  FreeGroup run() const {
    std::vector<Digit> digits = best_digits();
    for (;;) {
      std::vector<Permutation> generators;
      for (const Digit& digit : digits) generators.push_back(*automorphism(digit));
      if (auto group = FreeGroup::generated_by(topology_, generators)) return std::move(*group);
      // Together they do not act freely: leave out the one that matters least.
      digits.erase(std::ranges::min_element(digits, {}, &Digit::order));
    }
  }

 private:
  /// One whose powers keep no GPU and no link in its place.
  std::optional<Permutation> automorphism(const Digit& digit) const {
    std::vector<int> gpus(topology_.num_gpus());
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      const int number = static_cast<int>(g);
      const int value = number / digit.stride % digit.period;
      gpus[g] = number + (digit.image(value) - value) * digit.stride;
    }
    const auto order = static_cast<std::size_t>(digit.order());
    std::optional<std::vector<NodeId>> refused;
    for (const std::size_t cycle : {std::size_t{1}, order}) {
      const auto nodes = Extension(topology_, gpus, cycle).nodes();
      if (!nodes || nodes == refused) continue;  // the same where no switch could have stayed
      auto images = links_.with_links(*nodes);
      if (images && are_cycles_of(order, images->link) && is_automorphism(topology_, pattern_, *images))
        return images;
      refused = nodes;
    }
    return std::nullopt;
  }

  /// Of the digits that have an automorphism, those apart from each other whose orders have the greatest
  /// product.
  std::vector<Digit> best_digits() const {
    struct Best {
      std::size_t order = 1;
      std::vector<Digit> digits = {};
    };
    std::map<int, Best> up_to;  // the digits below a divisor
    for (const int end : divisors_) {
      Best& best = up_to[end];
      for (const int stride : divisors_) {
        if (stride >= end || end % stride != 0) continue;
        const Best& below = up_to.at(stride);
        if (below.order > best.order) best = below;
        for (const bool is_reflected : {false, true}) {
          const Digit digit{stride, end / stride, is_reflected};
          // A reflection keeps the middle of an odd number.
          if (is_reflected && digit.period % 2 != 0) continue;
          const std::size_t order = below.order * static_cast<std::size_t>(digit.order());
          if (order <= best.order || order > FreeGroup::kMaxOrder || !automorphism(digit)) continue;
          best = {order, below.digits};
          best.digits.push_back(digit);
        }
      }
    }
    return up_to.at(divisors_.back()).digits;
  }

  const Topology& topology_;
  const DemandPattern& pattern_;
  const LinkImages links_;
  std::vector<int> divisors_;
};

}  // namespace

FreeGroup group_of_digits(const Topology& topology, const DemandPattern& pattern) {
  return DigitSearch(topology, pattern).run();
}

}  // namespace rondo
