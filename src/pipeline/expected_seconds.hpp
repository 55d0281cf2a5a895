#pragma once

#include <map>
#include <string>
#include <utility>

#include "portfolio.hpp"

namespace rondo {

/// What a candidate is likely to take, by what others took: candidates are dealt over ranks by it, and
/// without a time limit nothing else depends on it. A unit of work takes as long as that of the engine and
/// policy in the last candidate of theirs, or as in all candidates together where there was none; while none
/// is known, one second.
class ExpectedSeconds {
 public:
  void learn(const Candidate& candidate, double seconds);
  double of(const Candidate& candidate) const;

 private:
  std::map<std::pair<std::size_t, std::string>, double> per_work_;  ///< by engine and policy
  double seconds_ = 0;                                              ///< of all, as work_
  double work_ = 0;
};

}  // namespace rondo
