#include "replayed_work.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <utility>

#include "rondo/parallel/work_log.hpp"

namespace rondo::benchmarks::scaling {

std::string ReplayedRun::limit() const {
  const std::pair<double, const char*> shares[] = {
      {own_s, "work of every rank"}, {idle_s, "uneven parts"}, {talk_s, "network"}};
  return std::ranges::max_element(shares, {}, [](const auto& share) { return share.first; })->second;
}

namespace {

/// Seconds that each rank is busy: ranks of a node draw what is dealt to them together.
std::vector<double> busy_s(const std::vector<double>& estimates, const std::vector<double>& seconds,
                           const std::vector<std::size_t>& kin, int ranks, int ranks_per_node) {
  std::vector<Bundle> bundles = bundles_of(estimates, deal_parts(estimates, ranks, kin), kin);
  largest_first(bundles);
  std::vector<double> busy(static_cast<std::size_t>(ranks), 0);
  for (const Bundle& bundle : bundles) {
    const int first = bundle.rank / ranks_per_node * ranks_per_node;
    const auto node = std::span(busy).subspan(
        static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(ranks_per_node, ranks - first)));
    double& next = *std::ranges::min_element(node);
    for (const std::size_t part : bundle.parts) next += seconds[part];
  }
  return busy;
}

}  // namespace

ReplayedRun replayed(const nlohmann::ordered_json& log, int ranks, const Network& network) {
  ReplayedRun run;
  run.ranks = ranks;
  const double depth = std::bit_width(static_cast<unsigned>(ranks - 1));
  for (const auto& step : log.at("steps")) {
    run.own_s += step.at("own_cpu_s").get<double>();
    std::vector<double> estimates;
    std::vector<double> seconds;
    std::vector<std::size_t> kin;  // of all parts of a step or of none
    for (const auto& part : step.at("parts")) {
      const std::size_t count = part.size() > 2 ? part.at(2).get<std::size_t>() : 1;
      estimates.insert(estimates.end(), count, part.at(0));
      seconds.insert(seconds.end(), count, part.at(1));
      if (part.size() > 3) kin.push_back(part.at(3));
    }
    const std::vector<double> busy = busy_s(estimates, seconds, kin, ranks, network.ranks_per_node);
    const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / ranks;
    run.parts_s += mean;
    run.idle_s += *std::ranges::max_element(busy) - mean;
    if (step.at("talk") == "none" || ranks == 1) continue;
    const double bytes = step.at("bytes").get<double>();
    const double received = step.at("talk") == "gather" ? bytes * (ranks - 1) / ranks : bytes;
    run.bytes += received;
    run.talk_s += 1e-6 * depth * network.latency_us + 1e-9 * received / network.bandwidth_GBps;
  }
  return run;
}

}  // namespace rondo::benchmarks::scaling
