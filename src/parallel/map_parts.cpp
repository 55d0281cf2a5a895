#include "rondo/parallel/map_parts.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "outcome.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/work_log.hpp"
#include "shared_counter.hpp"

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

std::vector<Bundle> bundles_of(const std::vector<double>& work_estimates, const std::vector<int>& rank_of,
                               const std::vector<std::size_t>& kin) {
  const std::vector<std::size_t> firsts = firsts_of(kin);
  std::vector<Bundle> bundles;
  std::map<std::pair<std::size_t, int>, std::size_t> number_of;  // by first of kin and rank
  for (std::size_t part = 0; part < rank_of.size(); ++part) {
    std::size_t number = bundles.size();
    if (!kin.empty())
      number = number_of.try_emplace({firsts[part], rank_of[part]}, bundles.size()).first->second;
    if (number == bundles.size()) bundles.push_back({.rank = rank_of[part]});
    bundles[number].work += work_estimates[part];
    bundles[number].parts.push_back(part);
  }
  return bundles;
}

void largest_first(std::vector<Bundle>& bundles) {
  std::ranges::stable_sort(bundles, std::ranges::greater{}, &Bundle::work);
}

std::vector<PartOutcome> map_parts(const Communicator& communicator,
                                   const std::vector<double>& work_estimates,
                                   const std::function<Bytes(std::size_t part)>& work,
                                   const std::vector<std::size_t>& kin) {
  assert(kin.empty() || kin.size() == work_estimates.size());
  assert(std::all_of(work_estimates.begin(), work_estimates.end(), [](double w) { return w >= 0; }));
  const RecordingCommunicator* log = recording(communicator);
  const double own_cpu_s = log ? log->take_own_cpu_s() : 0;
  std::vector<WorkStep::Part> logged;
  std::map<std::size_t, std::pair<double, Outcome>> done;  // by part, with seconds
  const auto work_on = [&](const Bundle& bundle) {
    for (const std::size_t part : bundle.parts) {
      const Stopwatch clock;
      const CpuStopwatch cpu;
      Outcome outcome = run_guarded([&] { return work(part); });
      done[part] = {clock.seconds(), std::move(outcome)};
      if (!log) continue;
      logged.push_back({.estimate = work_estimates[part], .cpu_s = cpu.seconds()});
      if (!kin.empty()) logged.back().kin = kin[part];
    }
  };
  std::vector<Bundle> bundles =
      bundles_of(work_estimates, deal_parts(work_estimates, communicator.size(), kin), kin);
  if (SharedCounter* counter = SharedCounter::of(communicator)) {
    const auto node_of = [&](int rank) { return counter->node_of_rank()[static_cast<std::size_t>(rank)]; };
    std::erase_if(bundles, [&](const Bundle& b) { return node_of(b.rank) != node_of(communicator.rank()); });
    largest_first(bundles);
    counter->deal(bundles.size(), [&](std::size_t number) { work_on(bundles[number]); });
  } else {
    for (const Bundle& bundle : bundles) {
      if (bundle.rank == communicator.rank()) work_on(bundle);
    }
  }
  if (log) log->add_parts(own_cpu_s, std::move(logged));

  MessageWriter message;
  message.put(done.size());
  for (auto& [part, outcome] : done) {
    message.put(part);
    message.put(outcome.first);
    put_outcome(message, std::exchange(outcome.second, {}));
  }
  const std::vector<Bytes> received = communicator.all_gather(message.take());
  std::vector<PartOutcome> outcomes(work_estimates.size());
  for (std::size_t rank = 0; rank < received.size(); ++rank) {
    MessageReader reader(received[rank]);
    for (auto parts = reader.get<std::size_t>(); parts > 0; --parts) {
      PartOutcome& outcome = outcomes[reader.get<std::size_t>()];
      outcome.rank = static_cast<int>(rank);
      outcome.seconds = reader.get<double>();
      Outcome value = get_outcome(reader);
      outcome.value = std::move(value.value);
      outcome.error = std::move(value.error);
    }
  }
  return outcomes;
}

}  // namespace rondo
