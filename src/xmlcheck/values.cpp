#include "values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/core/error.hpp"

namespace rondo::xmlcheck {
namespace {

/// Programs may double a sum in every step; beyond this it is wrong in any case.
constexpr std::int64_t kMany = std::int64_t{1} << 40;
constexpr std::size_t kMaxTerms = 100'000'000;

}  // namespace

Values::Terms Values::merged(const Terms& a, const Terms& b) {
  Terms all;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  Terms sum;
  for (const auto& [chunk, times] : all) {
    if (sum.empty() || sum.back().first != chunk) {
      sum.emplace_back(chunk, times);
    } else {
      sum.back().second = std::min(kMany, sum.back().second + times);
    }
  }
  return sum;
}

Values::Id Values::intern(Terms terms) {
  // A program of few steps may build sums of sums without end.
  num_terms_ += terms.size();
  if (num_terms_ > kMaxTerms) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("the sums that the steps build have more than {} terms; that is too many to be checked",
                    kMaxTerms));
  }
  const auto [known, is_new] = ids_.try_emplace(std::move(terms), static_cast<Id>(sums_.size()));
  if (is_new) sums_.push_back(&known->first);
  return known->second;
}

std::string Values::describe(Id id) const {
  if (id == kUndefined) return "nothing";
  const Terms& sum = terms(id);
  const auto& [chunk, times] = sum.front();
  const std::string first = fmt::format("i[{}] of gpu {}", chunk.second, chunk.first);
  if (sum.size() == 1) return times == 1 ? first : fmt::format("{} times {}", times, first);
  return fmt::format("the sum of {} chunks, {}{} among them", sum.size(), first,
                     times == 1 ? "" : fmt::format(" {} times", times));
}

}  // namespace rondo::xmlcheck
