#include "tenant_orders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/local_search/justification.hpp"
#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {
namespace {

/// Tenants beyond which exchanges are of neighbours in the order alone.
constexpr std::size_t kAllExchanges = 6;

}  // namespace

std::vector<TenantOrder> first_orders(const std::vector<TenantOutcome>& tenants,
                                      const std::vector<std::size_t>& by_bound) {
  const std::size_t n = tenants.size();
  TenantOrder blind{"blind", std::vector<TenantTurn>(n)};
  TenantOrder even{"in-proportion", std::vector<TenantTurn>(n)};
  for (std::size_t t = 0; t < n; ++t) even.turns[t].scale = 1 / tenants[t].alone_us;
  std::vector<TenantOrder> orders{blind, even};
  const auto placed = [&](const std::vector<std::size_t>& by, const std::string& name) {
    TenantOrder order{name, std::vector<TenantTurn>(n)};
    for (std::size_t place = 0; place < n; ++place) order.turns[by[place]].place = static_cast<int>(place);
    return order;
  };
  const auto in_turn = [&](auto before) {
    std::vector<std::size_t> by(n);
    std::iota(by.begin(), by.end(), std::size_t{0});
    std::ranges::stable_sort(by, before);
    return placed(by, "in-turn");
  };
  // Smith's rule; the first to begin; the longest one.
  const TenantOrder smith = in_turn([&](std::size_t a, std::size_t b) {
    return tenants[a].tenant.priority * tenants[b].alone_us >
           tenants[b].tenant.priority * tenants[a].alone_us;
  });
  orders.push_back(smith);  // the third
  orders.push_back(in_turn(
      [&](std::size_t a, std::size_t b) { return tenants[a].tenant.start_us < tenants[b].tenant.start_us; }));
  orders.push_back(
      in_turn([&](std::size_t a, std::size_t b) { return tenants[a].alone_us > tenants[b].alone_us; }));
  orders.push_back(placed(by_bound, "by-bound"));
  for (std::size_t rule = 0; rule < 4; ++rule) {
    TenantOrder order = orders[2 + rule];
    order.name = "behind";
    order.placing = TenantPlacing::behind;
    orders.push_back(order);
    order.name = "inserted";
    order.placing = TenantPlacing::inserted;
    orders.push_back(order);
    order.name = "rerouted";
    order.placing = TenantPlacing::rerouted;
    orders.push_back(order);
  }
  // The first ones in turn, the rest in proportion.
  for (std::size_t strict = 1; strict + 1 < n; ++strict) {
    TenantOrder mixed = smith;
    mixed.name = fmt::format("in-turn/{}", strict);
    for (std::size_t t = 0; t < n; ++t) {
      mixed.turns[t].place = std::min(mixed.turns[t].place, static_cast<int>(strict));
      mixed.turns[t].scale = even.turns[t].scale;
    }
    orders.push_back(std::move(mixed));
  }
  return orders;
}

std::vector<TenantOrder> exchanges(const TenantOrder& order) {
  std::vector<TenantOrder> result;
  for (std::size_t a = 0; a < order.turns.size(); ++a) {
    for (std::size_t b = a + 1; b < order.turns.size(); ++b) {
      const int apart = std::abs(order.turns[a].place - order.turns[b].place);
      if (apart == 0 || (apart > 1 && order.turns.size() > kAllExchanges)) continue;
      result.push_back(order);
      std::swap(result.back().turns[a].place, result.back().turns[b].place);
    }
  }
  return result;
}

std::vector<Send> one_behind_another(const Topology& topology, const TenantOrder& order,
                                     std::vector<Send> sends, const std::vector<std::size_t>& tenant_of) {
  // What links share, after the links.
  std::vector<std::vector<std::size_t>> used_by(topology.num_links());
  for (std::size_t l = 0; l < used_by.size(); ++l) used_by[l].push_back(l);
  const auto& groups = topology.shared_bandwidth();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const LinkId l : groups[g].links) used_by[l.index()].push_back(topology.num_links() + g);
  }
  std::vector<double> free_us(topology.num_links() + groups.size(), 0);
  std::vector<std::size_t> by_place(order.turns.size());
  std::iota(by_place.begin(), by_place.end(), std::size_t{0});
  std::ranges::stable_sort(by_place, {}, [&](std::size_t t) { return order.turns[t].place; });
  for (const std::size_t tenant : by_place) {
    double later_us = 0;
    for (std::size_t s = 0; s < sends.size(); ++s) {
      if (tenant_of[s] != tenant) continue;
      for (const std::size_t use : used_by[sends[s].link.index()])
        later_us = std::max(later_us, free_us[use] - sends[s].start_us);
    }
    for (std::size_t s = 0; s < sends.size(); ++s) {
      if (tenant_of[s] == tenant) delay(sends[s], later_us);
    }
    for (std::size_t s = 0; s < sends.size(); ++s) {
      if (tenant_of[s] != tenant) continue;
      for (const std::size_t use : used_by[sends[s].link.index()])
        free_us[use] = std::max(free_us[use], sends[s].end_us);
    }
  }
  return sends;
}

Schedule inserted(const Topology& topology, const Demand& demand, const std::vector<Send>& sends,
                  const std::vector<double>& keys, int concurrency, bool rerouted) {
  PlanSpace space = make_plan_space(topology, demand, concurrency);
  const bool has_sums = std::ranges::any_of(demand.contributions(), &Contribution::reduce);
  const auto order = has_sums ? std::nullopt : order_of({sends}, space);
  if (!order) throw Error(ExitCode::unavailable, "sums, and what waits in switches, are not inserted");
  // The first send of a transfer leaves the GPU when the transfer starts.
  std::map<std::tuple<ChunkId, LinkId, double>, double> key_of;
  for (std::size_t s = 0; s < sends.size(); ++s)
    key_of[{sends[s].chunk, sends[s].link, sends[s].start_us}] = keys[s];
  std::vector<double> by_plan;
  for (const PlannedTransfer& t : order->plan.transfers)
    by_plan.push_back(key_of.at({t.chunk, space.hop(t).links.front().link, t.start_us}));
  PlanFreedom freedom;
  if (rerouted) freedom = {.free = std::vector<char>(by_plan.size(), 1), .may_copy = space.may_copy()};
  return schedule_of(placed_forward(order->plan, space, by_plan, freedom), space);
}

}  // namespace rondo
