#include "rondo/model/formulation.hpp"

namespace rondo {

std::vector<int> interval_bounds(const Instance& instance) {
  const int epochs = instance.grid->num_epochs;
  std::vector<int> bounds = instance.interval_starts;
  for (int k = 0; instance.interval_starts.empty() && k < epochs; ++k) bounds.push_back(k);
  bounds.push_back(epochs);
  return bounds;
}

}  // namespace rondo
