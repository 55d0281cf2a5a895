#include "alike_places.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace rondo::certificates {
namespace {

/// Gives equal keys equal numbers, from 0 on.
template <class Key>
class Numbers {
 public:
  std::size_t of(Key key) { return known_.try_emplace(std::move(key), known_.size()).first->second; }

 private:
  std::map<Key, std::size_t> known_;
};

std::size_t number_of(const std::vector<std::size_t>& colours) {
  return colours.empty() ? 0 : *std::ranges::max_element(colours) + 1;
}

/// For each, the first of its colour.
std::vector<std::size_t> first_of_each(const std::vector<std::size_t>& colours) {
  std::vector<std::size_t> first(number_of(colours), colours.size());
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    first[colours[i]] = std::min(first[colours[i]], i);
    firsts.push_back(first[colours[i]]);
  }
  return firsts;
}

}  // namespace

AlikePlaces::AlikePlaces(const Topology& topology, const KnowledgePlaces& places)
    : topology_(topology), places_(places) {
  Colours colours = colours_at_first();
  for (std::size_t before = 0; number_of(colours) > before;) {
    before = number_of(colours);
    colours = refined(colours);
  }
  first_place_ = first_of_each(colours);
  first_link_ = first_of_each(colours_of_links(colours));
}

AlikePlaces::Colours AlikePlaces::colours_at_first() const {
  Numbers<std::tuple<std::vector<std::pair<double, double>>, Colours, Colours, Wide, std::size_t, bool>>
      numbers;
  Colours colours;
  for (std::size_t p = 0; p < places_.number(); ++p) {
    const KnowledgePlaces::Place& place = places_[p];
    // Each set is one of its own, and a switch that transfers pass no place at all.
    const bool is_node = p < topology_.num_nodes();
    const bool is_passed = is_node && places_.origins().is_passed(NodeId(p));
    colours.push_back(
        numbers.of({place.at_first, place.within, place.fed_by, place.delay_us, is_node ? 0 : p, is_passed}));
  }
  return colours;
}

AlikePlaces::Colours AlikePlaces::colours_of_sources(const Colours& of_place) const {
  Numbers<std::vector<std::pair<double, Colours>>> numbers;
  Colours colours(topology_.num_nodes(), 0);
  std::vector<char> is_known(topology_.num_nodes(), 0);
  for (std::size_t l = 0; l < topology_.num_links(); ++l) {
    const std::size_t source = topology_.link(LinkId(l)).src.index();
    if (is_known[source] != 0) continue;
    is_known[source] = 1;
    std::vector<std::pair<double, Colours>> key;
    for (const Origins::Group& group : places_.origins().of(LinkId(l))) {
      Colours& of_group = key.emplace_back(group.latency_us, Colours{}).second;
      for (const NodeId n : group.nodes) of_group.push_back(of_place[n.index()]);
      std::ranges::sort(of_group);
    }
    colours[source] = numbers.of(std::move(key));
  }
  return colours;
}

AlikePlaces::Colours AlikePlaces::colours_of_links(const Colours& of_place) const {
  const Colours of_source = colours_of_sources(of_place);
  Numbers<std::tuple<std::size_t, double, double, double, double, bool, Colours>> numbers;
  Colours colours;
  for (std::size_t l = 0; l < topology_.num_links(); ++l) {
    const Link& link = topology_.link(LinkId(l));
    const Origins& origins = places_.origins();
    colours.push_back(
        numbers.of({of_source[link.src.index()], greatest_GBps(link), link.latency_us, link.message_us,
                    origins.message_us(LinkId(l)), origins.adds(LinkId(l)), places_.feeding(LinkId(l))}));
  }
  return colours;
}

AlikePlaces::Colours AlikePlaces::refined(const Colours& of_place) const {
  const Colours of_link = colours_of_links(of_place);
  Numbers<std::pair<std::size_t, Colours>> numbers;
  Colours colours;
  for (std::size_t p = 0; p < places_.number(); ++p) {
    Colours entering;
    for (const std::size_t l : places_[p].entering) entering.push_back(of_link[l]);
    std::ranges::sort(entering);
    colours.push_back(numbers.of({of_place[p], std::move(entering)}));
  }
  return colours;
}

}  // namespace rondo::certificates
