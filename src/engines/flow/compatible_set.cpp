#include "compatible_set.hpp"

#include <algorithm>
#include <numeric>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

/// Attempts a claim that is not in the greedy set.
constexpr std::size_t kAttempts = 8;
constexpr std::size_t kMostAttempts = 256;
/// Shares that sum to a whole but for rounding fit.
constexpr double kShareRounding = 1e-9;
/// What is left of a resource that is taken, with the rounding of kShareRounding itself.
constexpr double kNothing = 2 * kShareRounding;

class Search {
 public:
  Search(std::span<const Claim> claims, std::span<const double> left)
      : claims_(claims), chosen_(claims.size(), 0) {
    int resources = 0;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      first_part_.push_back(parts_.size());
      for (const ClaimedPart& part : claims[i].parts) {
        resources = std::max(resources, part.resource + 1);
        parts_.push_back(part);
        claim_with_.push_back(i);
      }
    }
    first_part_.push_back(parts_.size());
    next_owner_.assign(parts_.size(), kNone);
    first_owner_.assign(index(resources), kNone);
    left_.assign(index(resources), 1 + kShareRounding);
    for (std::size_t r = 0; r < std::min(left_.size(), left.size()); ++r) left_[r] = left[r] + kShareRounding;
    fill(0);
  }

  void improve(Random& random) {
    const auto out = static_cast<std::size_t>(std::count(chosen_.begin(), chosen_.end(), 0));
    if (out == 0) return;
    index_claims();
    const std::size_t attempts = std::min(kMostAttempts, kAttempts * out);
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
  static constexpr int kNone = -1;

  std::span<const ClaimedPart> parts(std::size_t claim) const {
    return std::span(parts_).subspan(first_part_[claim], first_part_[claim + 1] - first_part_[claim]);
  }
  bool fits(std::size_t claim) const {
    return std::ranges::all_of(
        parts(claim), [&](const ClaimedPart& part) { return part.share <= left_[index(part.resource)]; });
  }
  void set(std::size_t claim, bool in) {
    chosen_[claim] = in ? 1 : 0;
    weight_ += in ? claims_[claim].weight : -claims_[claim].weight;
    for (std::size_t k = first_part_[claim]; k < first_part_[claim + 1]; ++k) {
      const std::size_t r = index(parts_[k].resource);
      const int entry = static_cast<int>(k);
      left_[r] += in ? -parts_[k].share : parts_[k].share;
      if (in) {
        next_owner_[index(entry)] = first_owner_[r];
        first_owner_[r] = entry;
      } else {
        int* link = &first_owner_[r];
        while (*link != entry) link = &next_owner_[index(*link)];
        *link = next_owner_[index(entry)];
      }
    }
    changes_.push_back(claim);
  }
  /// One of the resource's owners' parts; at random where there are several.
  int any_owner(std::size_t resource, Random& random) const {
    const int first = first_owner_[resource];
    std::size_t count = 0;
    for (int entry = first; entry != kNone; entry = next_owner_[index(entry)]) ++count;
    int chosen = first;
    for (std::size_t skip = count > 1 ? random.below(count) : 0; skip > 0; --skip)
      chosen = next_owner_[index(chosen)];
    return chosen;
  }
  /// Puts in what fits, from position `first` on and around.
  void fill(std::size_t first) {
    for (std::size_t k = 0; k < claims_.size(); ++k) {
      const std::size_t i = (first + k) % claims_.size();
      if (!chosen_[i] && fits(i)) set(i, true);
    }
  }
  /// The same as fill() where nothing fitted before `freed` resources were.
  void refill(std::size_t first, const std::vector<std::size_t>& freed) {
    candidates_.clear();
    for (const std::size_t resource : freed) {
      if (left_[resource] <= kNothing) continue;
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
    begin_.assign(first_owner_.size() + 1, 0);
    for (const ClaimedPart& part : parts_) ++begin_[index(part.resource) + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    claim_of_.resize(begin_.back());
    std::vector<std::size_t> next = begin_;
    for (std::size_t k = 0; k < parts_.size(); ++k)
      claim_of_[next[index(parts_[k].resource)]++] = claim_with_[k];
  }
  void attempt(std::size_t forced, Random& random) {
    if (chosen_[forced]) return;
    changes_.clear();
    freed_.clear();
    const double before = weight_;
    for (const ClaimedPart& part : parts(forced)) {
      const std::size_t r = index(part.resource);
      while (part.share > left_[r]) {
        if (first_owner_[r] == kNone) {  // it is taken by what is no claim
          undo(before);
          return;
        }
        const std::size_t owner = claim_with_[index(any_owner(r, random))];
        for (const ClaimedPart& freed : parts(owner)) freed_.push_back(index(freed.resource));
        set(owner, false);
      }
    }
    set(forced, true);
    refill(random.below(claims_.size()), freed_);
    if (weight_ < before) undo(before);
  }
  void undo(double weight) {
    const std::vector<std::size_t> changed(changes_.rbegin(), changes_.rend());
    for (const std::size_t claim : changed) set(claim, !chosen_[claim]);
    weight_ = weight;
  }

  std::span<const Claim> claims_;
  std::vector<char> chosen_;
  std::vector<std::size_t> first_part_;  ///< per claim, and the end
  std::vector<ClaimedPart> parts_;       ///< of all claims, one after another
  std::vector<std::size_t> claim_with_;  ///< per part
  std::vector<int> next_owner_;          ///< per part: of the same resource
  std::vector<int> first_owner_;         ///< per resource: a part in the set
  std::vector<double> left_;             ///< per resource
  std::vector<std::size_t> changes_;
  std::vector<std::size_t> begin_;  ///< per resource: where its claims begin in claim_of_
  std::vector<std::size_t> claim_of_;
  std::vector<std::size_t> freed_;  ///< of the attempt, as candidates_
  std::vector<std::size_t> candidates_;
  double weight_ = 0;
};

}  // namespace

std::vector<std::size_t> compatible_set(std::span<const Claim> claims, Random& random,
                                        std::span<const double> left) {
  if (claims.empty()) return {};
  if (claims.size() == 1 && std::ranges::all_of(claims.front().parts, [&](const ClaimedPart& part) {
        const std::size_t r = index(part.resource);
        return part.share <= (r < left.size() ? left[r] : 1) + kShareRounding;
      }))
    return {0};
  Search search(claims, left);
  search.improve(random);
  return search.result();
}

}  // namespace rondo
