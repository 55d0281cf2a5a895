#include "reordered_sums.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "chunk_counts.hpp"
#include "in_turn.hpp"
#include "replayed.hpp"
#include "rondo/core/interleaving.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/pipeline/halves.hpp"

namespace rondo {
namespace {

constexpr int kPasses = 6;
/// Larger schedules keep their order, and chunks of those half as large are not worth their time.
constexpr std::size_t kMostSends = 400'000;
constexpr std::size_t kMostSendsInHalves = 200'000;
constexpr std::size_t kMostSendsInVain = 100'000;  ///< after an order that gained nothing
constexpr double kSecondsPerSend = 2e-5;
/// What as many chunks again have to gain, at once or with the next.
constexpr double kWorthHalves = 1e-3;

/// Nothing where the replay refuses the order, or sums would wait for each other.
std::optional<Schedule> in_order(const Problem& problem, const std::vector<Send>& sends, int chunks) {
  const Topology& topology = *problem.topology;
  const Demand demand = problem.demand.with_chunks(chunks);
  std::vector<double> keys;
  for (const Send& send : sends) keys.push_back(send.start_us);
  return accepted_if_made(topology, demand, [&] {
    return interleaved_there_and_back({topology, sends}, topology, demand, keys, kPasses,
                                      problem.options.concurrency);
  });
}

/// GPUs that want a sum add up parts of it, which may be as small as other contributions' chunks.
int most_chunks(const Problem& problem) {
  const auto halves = problem.options.chunks == 0 ? halves_of(problem.demand) : std::nullopt;
  if (!halves) return most_chunks_of_improvement(problem.demand, problem.options);
  return halves->parts * most_chunks_of_improvement(halves->spreading, problem.options);
}

}  // namespace

bool has_time_for_sums(const Problem& problem, std::size_t sends, const RunContext& context) {
  const std::optional<double>& limit_s = problem.options.time_limit_s;
  if (limit_s && context.seconds() + kSecondsPerSend * static_cast<double>(sends) > *limit_s) return false;
  return !context.interrupted();
}

void reorder_sums(const Problem& problem, Incumbent& best, const RunContext& context) {
  std::vector<Send> sends = best.found.schedule->sends;
  if (problem.topology->has_bandwidth_steps() || sends.size() > kMostSends) return;
  number_transfers(*problem.topology, problem.demand.with_chunks(best.chunks), sends);
  const int most = most_chunks(problem);
  bool in_vain = false;
  for (int chunks = best.chunks; has_time_for_sums(problem, sends.size(), context); chunks *= 2) {
    std::optional<Schedule> ordered = in_order(problem, sends, chunks);
    if (!ordered) return;
    const double worth = chunks > best.chunks ? 1 - kWorthHalves : 1;
    if (ordered->finish_us < best.found.schedule->finish_us * worth) {
      best.found.schedule = ordered;
      best.chunks = chunks;
      best.is_replayed = true;
      in_vain = false;
    } else if (std::exchange(in_vain, true)) {
      return;
    }
    const std::size_t most_sends = in_vain ? kMostSendsInVain : kMostSendsInHalves;
    if (2 * chunks > most || 2 * ordered->sends.size() > most_sends) return;
    sends = sliced(ordered->sends, 2);
  }
}

}  // namespace rondo
