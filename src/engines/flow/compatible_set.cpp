#include "compatible_set.hpp"

#include <algorithm>
#include <numeric>

namespace rondo {
namespace {

/// Attempts a claim that is not in the greedy set.
constexpr std::size_t kAttempts = 8;
constexpr std::size_t kMostAttempts = 256;

class Search {
 public:
  explicit Search(std::span<const Claim> claims) : claims_(claims), chosen_(claims.size(), 0) {
    int resources = 0;
    for (const Claim& claim : claims) {
      for (const int r : claim.resources) resources = std::max(resources, r + 1);
    }
    owner_.assign(static_cast<std::size_t>(resources), -1);
    fill(0);
  }

  void improve(Random& random) {
    const auto left = static_cast<std::size_t>(std::count(chosen_.begin(), chosen_.end(), 0));
    if (left == 0) return;
    index_claims();
    const std::size_t attempts = std::min(kMostAttempts, kAttempts * left);
    for (std::size_t i = 0; i < attempts; ++i) attempt(random.below(claims_.size()), random);
  }

  std::vector<std::size_t> result() const {
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (chosen_[i]) positions.push_back(i);
    }
    return positions;
  }

 private:
  bool fits(std::size_t claim) const {
    return std::all_of(claims_[claim].resources.begin(), claims_[claim].resources.end(),
                       [&](int r) { return owner_[static_cast<std::size_t>(r)] < 0; });
  }
  void set(std::size_t claim, bool in) {
    chosen_[claim] = in ? 1 : 0;
    weight_ += in ? claims_[claim].weight : -claims_[claim].weight;
    for (const int r : claims_[claim].resources)
      owner_[static_cast<std::size_t>(r)] = in ? static_cast<int>(claim) : -1;
    changes_.push_back(claim);
  }
  /// Puts in what fits, from position `first` on and around.
  void fill(std::size_t first) {
    for (std::size_t k = 0; k < claims_.size(); ++k) {
      const std::size_t i = (first + k) % claims_.size();
      if (!chosen_[i] && fits(i)) set(i, true);
    }
  }
  /// The same as fill() where nothing fitted before `freed` resources were.
  void refill(std::size_t first, const std::vector<int>& freed) {
    candidates_.clear();
    for (const int r : freed) {
      const auto resource = static_cast<std::size_t>(r);
      if (owner_[resource] >= 0) continue;
      for (std::size_t k = begin_[resource]; k < begin_[resource + 1]; ++k)
        candidates_.push_back((claim_of_[k] + claims_.size() - first) % claims_.size());
    }
    std::sort(candidates_.begin(), candidates_.end());
    for (const std::size_t k : candidates_) {
      const std::size_t i = (first + k) % claims_.size();
      if (!chosen_[i] && fits(i)) set(i, true);
    }
  }
  /// Claims by resource.
  void index_claims() {
    begin_.assign(owner_.size() + 1, 0);
    for (const Claim& claim : claims_) {
      for (const int r : claim.resources) ++begin_[static_cast<std::size_t>(r) + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    claim_of_.resize(begin_.back());
    std::vector<std::size_t> next = begin_;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      for (const int r : claims_[i].resources) claim_of_[next[static_cast<std::size_t>(r)]++] = i;
    }
  }
  void attempt(std::size_t forced, Random& random) {
    if (chosen_[forced]) return;
    changes_.clear();
    freed_.clear();
    const double before = weight_;
    for (const int r : claims_[forced].resources) {
      const int owner = owner_[static_cast<std::size_t>(r)];
      if (owner < 0) continue;
      const std::vector<int>& resources = claims_[static_cast<std::size_t>(owner)].resources;
      freed_.insert(freed_.end(), resources.begin(), resources.end());
      set(static_cast<std::size_t>(owner), false);
    }
    set(forced, true);
    refill(random.below(claims_.size()), freed_);
    if (weight_ >= before) return;
    const std::vector<std::size_t> undo(changes_.rbegin(), changes_.rend());
    for (const std::size_t claim : undo) set(claim, !chosen_[claim]);
    weight_ = before;
  }

  std::span<const Claim> claims_;
  std::vector<char> chosen_;
  std::vector<int> owner_;  ///< per resource; -1 = free
  std::vector<std::size_t> changes_;
  std::vector<std::size_t> begin_;  ///< per resource: where its claims begin in claim_of_
  std::vector<std::size_t> claim_of_;
  std::vector<int> freed_;  ///< of the attempt, as candidates_
  std::vector<std::size_t> candidates_;
  double weight_ = 0;
};

}  // namespace

std::vector<std::size_t> compatible_set(std::span<const Claim> claims, Random& random) {
  if (claims.empty()) return {};
  Search search(claims);
  search.improve(random);
  return search.result();
}

}  // namespace rondo
