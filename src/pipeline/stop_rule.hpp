#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "rondo/bounds/bounds.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "time_shares.hpp"

namespace rondo {

/// When a search ends although something is left to try: the gap is met, a signal came, the time is over.
class StopRule {
 public:
  StopRule(const Problem& problem, const Bounds& bounds, const RunContext& context)
      : problem_(problem), bounds_(bounds), context_(context) {}

  const LowerBound& bound() const { return bounds_.best(); }
  /// A schedule that ends by then is good enough.
  double enough_us() const;
  /// What no schedule in whole chunks ends before: a cut may say more of them than the best bound of all.
  double least_us(int chunks) const;

  /// Collective. Whether a schedule that ends at `finish_us` ends the search.
  bool stop(double finish_us);
  /// Of the time limit, the seconds that replaying and writing a schedule of so many sends need are left out.
  void expect(double sends) { closing_s_ = kClosingSecondsPerSend * sends; }
  /// Collective. The share of the time limit that is over; 0 where there is none.
  double time_share() const;
  /// By the clock of this rank: when time_share() gets to `share`. Never where there is no time limit.
  Deadline deadline(double share = 1) const;

  void hit(const std::string& limit);
  /// "interrupted", "time", "work", "nodes": each one once.
  const std::vector<std::string>& limits_hit() const { return limits_hit_; }

 private:
  const Problem& problem_;
  const Bounds& bounds_;
  const RunContext& context_;
  /// Of the time limit, for all but replaying and writing; at least a tenth of it.
  double search_s() const;

  std::optional<double> least_us_of_asked_chunks_;
  double closing_s_ = 0;
  std::vector<std::string> limits_hit_;
};

}  // namespace rondo
