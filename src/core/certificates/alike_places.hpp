#pragma once

#include <cstddef>
#include <vector>

#include "knowledge_places.hpp"

namespace rondo::certificates {

/// Places of a certificate `knowledge` that have K alike, and links that have F alike, since all that these
/// follow from is alike: the coarsest such partition, by refinement of colours (as in Paige and Tarjan, SIAM
/// J. Computing 16, 1987). One of each class is enough to compute.
class AlikePlaces {
 public:
  AlikePlaces(const Topology& topology, const KnowledgePlaces& places);

  /// The first that is like it.
  std::size_t first_place(std::size_t place) const { return first_place_[place]; }
  std::size_t first_link(std::size_t link) const { return first_link_[link]; }

 private:
  using Colours = std::vector<std::size_t>;

  Colours colours_at_first() const;
  /// What links with these sources can get from there.
  Colours colours_of_sources(const Colours& of_place) const;
  Colours colours_of_links(const Colours& of_place) const;
  Colours refined(const Colours& of_place) const;

  const Topology& topology_;
  const KnowledgePlaces& places_;
  Colours first_place_;
  Colours first_link_;
};

}  // namespace rondo::certificates
