#include "expected_seconds.hpp"

namespace rondo {

void ExpectedSeconds::learn(const Candidate& candidate, double seconds) {
  if (candidate.work <= 0) return;
  per_work_[{candidate.engine, candidate.policy}] = seconds / candidate.work;
  seconds_ += seconds;
  work_ += candidate.work;
}

double ExpectedSeconds::of(const Candidate& candidate) const {
  const auto known = per_work_.find({candidate.engine, candidate.policy});
  if (known != per_work_.end()) return known->second * candidate.work;
  return work_ > 0 ? seconds_ / work_ * candidate.work : candidate.work;
}

}  // namespace rondo
