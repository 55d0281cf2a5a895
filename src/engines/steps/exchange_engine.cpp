#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>

#include "rondo/core/demand_shapes.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/units.hpp"
#include "rondo/engines/engine_row.hpp"
#include "rondo/engines/exchange.hpp"

/// AllReduce of small buffers, in which latencies count: sums of the whole buffer go both ways at once.
namespace rondo {
namespace {

const char* const kMultiplying = "multiplying";  // groups of whatever sizes end first
const char* const kDoubling = "doubling";        // groups of two

constexpr double kMostBytesShare = 0.5;  ///< of the bound

/// A level sends the whole buffer: of no use where bytes take most of the time, be it the buffer's over the
/// fastest link or all that n GPUs have to send, 2 (n - 1) buffers, over all of theirs.
bool is_small(const Instance& instance, double bound_us) {
  const Topology& topology = *instance.topology;
  const double bytes = instance.demand.size_bytes();
  double fastest_GBps = 0;
  double total_GBps = 0;
  for (const Link& link : topology.links()) {
    fastest_GBps = std::max(fastest_GBps, link.bandwidth_GBps);
    if (topology.is_gpu(link.src)) total_GBps += link.bandwidth_GBps;
  }
  const auto others = static_cast<double>(members_of(instance.demand).size() - 1);
  const double bytes_us =
      std::max(transmission_us(bytes, fastest_GBps), transmission_us(2 * others * bytes, total_GBps));
  return bytes_us <= kMostBytesShare * bound_us;
}

std::string why_none(const Instance& instance, const std::string& policy) {
  return fmt::format(
      "engine exchange finds no groups of {}GPUs, followed by groups of groups, on '{}' that "
      "links and switches join without other GPUs between; use --engine auto",
      policy == kDoubling ? "two " : "", instance.topology->name());
}

PreparedEngine prepare_exchange(const Instance& instance, const EngineOptions& options, const Toolbox&) {
  if (!is_plain_all_reduce(instance.demand)) {
    throw Error(ExitCode::unavailable,
                "engine exchange does AllReduce: sums of the same GPUs for those GPUs; use --engine auto");
  }
  const std::vector<GpuId> members = members_of(instance.demand);
  const auto hops = std::make_shared<const HopTable>(*instance.topology);
  const auto count = static_cast<unsigned>(members.size());
  const auto levels_of = std::make_shared<std::map<std::string, std::optional<ExchangeLevels>>>();
  const auto weigh = [&](const char* policy, std::vector<std::vector<int>> tried) {
    const Demand whole = instance.demand.with_chunks(1);
    const ExchangeProblem problem{*instance.topology, *hops, {members}, 1, whole, options.concurrency};
    (*levels_of)[policy] = best_levels(problem, std::move(tried));
  };
  weigh(kMultiplying, ordered_factorisations(static_cast<int>(count)));
  if (std::has_single_bit(count)) weigh(kDoubling, {std::vector<int>(index(std::countr_zero(count)), 2)});
  return [instance, hops, levels_of](const Demand& demand, const EngineOptions& asked) {
    const std::string policy = asked.policy.empty() ? kMultiplying : asked.policy;
    const std::optional<ExchangeLevels>& levels = levels_of->at(policy);
    EngineResult result;
    if (levels) {
      result.schedule = exchange({*instance.topology, *hops, {}, 1, demand, asked.concurrency}, *levels);
      result.metrics["levels"] = static_cast<double>(levels->radices.size());
    }
    if (!result.schedule) throw Error(ExitCode::unavailable, why_none(instance, policy));
    return result;
  };
}

}  // namespace

EngineInfo exchange_engine() {
  EngineInfo engine{.name = "exchange",
                    .help =
                        "groups of GPUs exchange their sums, then groups of groups (recursive doubling and "
                        "multiplying); AllReduce of small sizes",
                    .policies = {kMultiplying, kDoubling},
                    .traits = kContinuousTime};
  engine.applicable = [](const Instance& instance, const EngineOptions& options) {
    return is_plain_all_reduce(instance.demand) && is_small(instance, options.bound_us);
  };
  engine.offers = [](const Instance& instance, const EngineOptions&) {
    const bool is_power_of_2 = std::has_single_bit(members_of(instance.demand).size());
    return [=](const std::string& policy) { return policy != kDoubling || is_power_of_2; };
  };
  engine.work = [](const Demand& demand, const std::string&) { return 4 * demand.num_deliveries(); };
  engine.combines = true;
  engine.goes_first = true;
  engine.spreads = false;
  engine.takes_seeds = false;
  engine.prepare = prepare_exchange;
  return engine;
}

}  // namespace rondo
