#include "rondo/parallel/map_parts.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <numeric>
#include <utility>

#include "outcome.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/work_log.hpp"

namespace rondo {

std::vector<int> deal_parts(const std::vector<double>& work_estimates, int ranks) {
  std::vector<std::size_t> order(work_estimates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return work_estimates[a] > work_estimates[b]; });
  std::vector<std::pair<double, std::size_t>> load(static_cast<std::size_t>(ranks));  // work, parts
  std::vector<int> rank_of(work_estimates.size());
  for (const std::size_t part : order) {
    const auto least = std::min_element(load.begin(), load.end());
    rank_of[part] = static_cast<int>(least - load.begin());
    least->first += work_estimates[part];
    ++least->second;
  }
  return rank_of;
}

std::vector<PartOutcome> map_parts(const Communicator& communicator,
                                   const std::vector<double>& work_estimates,
                                   const std::function<Bytes(std::size_t part)>& work) {
  assert(std::all_of(work_estimates.begin(), work_estimates.end(), [](double w) { return w >= 0; }));
  const std::vector<int> rank_of = deal_parts(work_estimates, communicator.size());

  const RecordingCommunicator* log = recording(communicator);
  const double own_cpu_s = log ? log->take_own_cpu_s() : 0;
  std::vector<WorkStep::Part> logged;
  MessageWriter message;
  for (std::size_t part = 0; part < rank_of.size(); ++part) {
    if (rank_of[part] != communicator.rank()) continue;
    const Stopwatch clock;
    const CpuStopwatch cpu;
    const Outcome outcome = run_guarded([&] { return work(part); });
    message.put(clock.seconds());
    put_outcome(message, outcome);
    if (log) logged.push_back({.estimate = work_estimates[part], .cpu_s = cpu.seconds()});
  }
  if (log) log->add_parts(own_cpu_s, std::move(logged));

  const std::vector<Bytes> received = communicator.all_gather(message.take());
  std::vector<MessageReader> readers(received.begin(), received.end());
  std::vector<PartOutcome> outcomes;
  outcomes.reserve(rank_of.size());
  for (const int rank : rank_of) {
    MessageReader& reader = readers[static_cast<std::size_t>(rank)];
    const double seconds = reader.get<double>();
    Outcome outcome = get_outcome(reader);
    outcomes.push_back({std::move(outcome.value), std::move(outcome.error), rank, seconds});
  }
  return outcomes;
}

}  // namespace rondo
