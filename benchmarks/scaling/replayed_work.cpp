#include "replayed_work.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "rondo/parallel/work_log.hpp"

namespace rondo::benchmarks {

std::string ReplayedRun::limit() const {
  const std::pair<double, const char*> shares[] = {
      {own_s, "work of every rank"}, {idle_s, "uneven parts"}, {talk_s, "network"}};
  return std::ranges::max_element(shares, {}, [](const auto& share) { return share.first; })->second;
}

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
    const std::vector<int> rank_of = deal_parts(estimates, ranks, kin);
    std::vector<double> busy(static_cast<std::size_t>(ranks), 0);
    for (std::size_t i = 0; i < seconds.size(); ++i) busy[static_cast<std::size_t>(rank_of[i])] += seconds[i];
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

}  // namespace rondo::benchmarks
