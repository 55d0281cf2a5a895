#include "dealing.hpp"

#include <algorithm>

namespace rondo {

std::vector<std::size_t> deal(const std::vector<double>& shares, std::size_t num_chunks) {
  std::vector<std::size_t> share_of(num_chunks);
  std::vector<double> owed(shares.size(), 0);
  for (std::size_t c = 0; c < num_chunks; ++c) {
    for (std::size_t s = 0; s < shares.size(); ++s) owed[s] += shares[s];
    const auto most = std::ranges::max_element(owed);
    *most -= 1;
    share_of[c] = static_cast<std::size_t>(most - owed.begin());
  }
  return share_of;
}

}  // namespace rondo
