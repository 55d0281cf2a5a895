#include "stop_rule.hpp"

#include "rondo/engines/engines.hpp"

namespace rondo {
namespace {

/// With --from and without --gap, the greatest gap that is good enough because the kept schedule had it too.
constexpr double kGapOfKept = 1e-3;
/// And one that leaves nothing of weight to a search from scratch.
constexpr double kAsGoodAsAnew = 1e-4;
/// Without --gap, of trees in many chunks: more of them would come nearer, for as many more sends.
constexpr double kGapOfChunks = 5e-4;
constexpr double kLeastShareOfSearch = 0.1;
/// What rounding may add to a finish time.
constexpr double kSameFinish = 1 + 1e-6;

}  // namespace

double StopRule::enough_us() const {
  double gap = problem_.options.gap_to_meet();
  if (!problem_.options.gap && is_rooted(problem_.demand)) gap = std::max(gap, kGapOfChunks);
  const ProvenSchedule* kept = problem_.start.get();
  if (kept && kept->lower_bound && !problem_.options.gap) {
    const double kept_gap = kept->schedule.finish_us * kSameFinish / kept->lower_bound->us - 1;
    gap = std::max(gap, std::clamp(kept_gap, kAsGoodAsAnew, kGapOfKept));
  }
  return bound().us * (1 + gap);
}

double StopRule::least_us(int chunks) const {
  const Demand demand = problem_.demand.with_chunks(chunks);
  double us = 0;
  for (const LowerBound* bound : bounds_.best_of_each_kind()) {
    // Others are the same in any chunks, and some take long to derive again.
    const Certificate& certificate = bound->certificate;
    const bool counts_chunks = std::holds_alternative<CutCertificate>(certificate) ||
                               std::holds_alternative<PartitionCertificate>(certificate);
    us = std::max(us,
                  counts_chunks ? whole_chunk_bound_of(*problem_.topology, demand, certificate) : bound->us);
  }
  return us;
}

bool StopRule::stop(double finish_us) {
  const bool cut_short = context_.interrupted();
  const bool late = time_share() >= 1;
  if (cut_short) hit("interrupted");
  if (late) hit("time");
  if (cut_short || late || finish_us <= enough_us()) return true;
  const int asked = problem_.options.chunks;
  if (asked == 0) return false;
  if (!least_us_of_asked_chunks_) least_us_of_asked_chunks_ = least_us(asked);
  return finish_us <= *least_us_of_asked_chunks_ * (1 + 1e-6);
}

double StopRule::time_share() const {
  return problem_.options.time_limit_s ? context_.seconds() / search_s() : 0;
}

double StopRule::search_s() const {
  const double limit_s = *problem_.options.time_limit_s;
  return std::max(limit_s - closing_s_, kLeastShareOfSearch * limit_s);
}

Deadline StopRule::deadline(double share) const {
  SolveLimits limits;
  if (problem_.options.time_limit_s)
    limits.time_limit_s = std::max(0.0, share * search_s() - context_.clock.seconds());
  return Deadline(limits);
}

void StopRule::hit(const std::string& limit) {
  if (std::ranges::find(limits_hit_, limit) == limits_hit_.end()) limits_hit_.push_back(limit);
}

}  // namespace rondo
