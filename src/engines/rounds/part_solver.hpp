#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "rondo/engines/engine.hpp"
#include "rondo/model/round_model.hpp"
#include "rondo/parallel/messages.hpp"
#include "round_parts.hpp"

namespace rondo {

inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// The result of a part's model; sent between ranks.
struct PartResult {
  std::string outcome;
  std::int64_t columns = 0, rows = 0, nodes = 0, iterations = 0;
  double before = kNoValue, after = kNoValue;
  std::vector<RoundStart> starts = {};  ///< those of the start where the model found nothing better
};

auto members_of(SameAs<PartResult> auto& r) {
  return std::tie(r.outcome, r.columns, r.rows, r.nodes, r.iterations, r.before, r.after, r.starts);
}

/// Solves one part's look-ahead model from its start. Limits on nodes and simplex iterations make the result
/// the same on every machine; they are lower where there is a plan to fall back to (`has_plan`).
PartResult solve_part(const PartTask& task, bool has_plan, const Toolbox& tools,
                      const SolveLimits& user_limits);

/// How many transfers of `b` are not in `a`.
std::int64_t changed(std::vector<RoundStart> a, std::vector<RoundStart> b);

}  // namespace rondo
