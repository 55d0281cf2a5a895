#include "rondo/parallel/map_parts.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "outcome.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/work_log.hpp"

namespace rondo {

namespace {

/// For each part the first one of its kin.
std::vector<std::size_t> firsts_of(const std::vector<std::size_t>& kin) {
  std::map<std::size_t, std::size_t> first_of;
  std::vector<std::size_t> firsts;
  for (const std::size_t k : kin) firsts.push_back(first_of.try_emplace(k, firsts.size()).first->second);
  return firsts;
}

std::vector<int> deal_largest_first(const std::vector<double>& work_estimates, int ranks) {
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

}  // namespace

std::vector<int> deal_parts(const std::vector<double>& work_estimates, int ranks,
                            const std::vector<std::size_t>& kin) {
  const std::vector<std::size_t> firsts = firsts_of(kin);
  std::map<std::size_t, double> together;  // by first part
  for (std::size_t part = 0; part < firsts.size(); ++part) together[firsts[part]] += work_estimates[part];
  if (std::ranges::count_if(together, [](const auto& t) { return t.second > 0; }) < ranks)
    return deal_largest_first(work_estimates, ranks);
  std::vector<double> sums;
  for (const auto& [first, sum] : together) sums.push_back(sum);
  const std::vector<int> rank_of_kin = deal_largest_first(sums, ranks);
  std::vector<int> rank_of;
  for (const std::size_t first : firsts) {
    const auto at = std::distance(together.begin(), together.find(first));
    rank_of.push_back(rank_of_kin[static_cast<std::size_t>(at)]);
  }
  return rank_of;
}

std::vector<PartOutcome> map_parts(const Communicator& communicator,
                                   const std::vector<double>& work_estimates,
                                   const std::function<Bytes(std::size_t part)>& work,
                                   const std::vector<std::size_t>& kin) {
  assert(kin.empty() || kin.size() == work_estimates.size());
  assert(std::all_of(work_estimates.begin(), work_estimates.end(), [](double w) { return w >= 0; }));
  const std::vector<int> rank_of = deal_parts(work_estimates, communicator.size(), kin);
  std::vector<std::size_t> own;
  for (std::size_t part = 0; part < rank_of.size(); ++part)
    if (rank_of[part] == communicator.rank()) own.push_back(part);
  if (!kin.empty())
    std::ranges::stable_sort(own, {}, [&, firsts = firsts_of(kin)](auto p) { return firsts[p]; });

  const RecordingCommunicator* log = recording(communicator);
  const double own_cpu_s = log ? log->take_own_cpu_s() : 0;
  std::vector<WorkStep::Part> logged;
  std::map<std::size_t, std::pair<double, Outcome>> done;  // by part, with seconds
  for (const std::size_t part : own) {
    const Stopwatch clock;
    const CpuStopwatch cpu;
    Outcome outcome = run_guarded([&] { return work(part); });
    done[part] = {clock.seconds(), std::move(outcome)};
    if (!log) continue;
    logged.push_back({.estimate = work_estimates[part], .cpu_s = cpu.seconds()});
    if (!kin.empty()) logged.back().kin = kin[part];
  }
  if (log) log->add_parts(own_cpu_s, std::move(logged));
  MessageWriter message;
  for (auto& [part, outcome] : done) {
    message.put(outcome.first);
    put_outcome(message, std::exchange(outcome.second, {}));
  }

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
