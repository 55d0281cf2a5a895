#include "tenant_orders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace rondo {
namespace {

/// Tenants beyond which exchanges are of neighbours in the order alone.
constexpr std::size_t kAllExchanges = 6;

}  // namespace

std::vector<TenantOrder> first_orders(const std::vector<TenantOutcome>& tenants) {
  const std::size_t n = tenants.size();
  TenantOrder blind{"blind", std::vector<TenantTurn>(n)};
  TenantOrder even{"in-proportion", std::vector<TenantTurn>(n)};
  for (std::size_t t = 0; t < n; ++t) even.turns[t].scale = 1 / tenants[t].alone_us;
  std::vector<TenantOrder> orders{blind, even};
  const auto in_turn = [&](auto before) {
    std::vector<std::size_t> by(n);
    std::iota(by.begin(), by.end(), std::size_t{0});
    std::ranges::stable_sort(by, before);
    TenantOrder order{"in-turn", std::vector<TenantTurn>(n)};
    for (std::size_t place = 0; place < n; ++place) order.turns[by[place]].place = static_cast<int>(place);
    return order;
  };
  // Smith's rule; the first to begin; the longest one.
  const TenantOrder smith = in_turn([&](std::size_t a, std::size_t b) {
    return tenants[a].tenant.priority * tenants[b].alone_us >
           tenants[b].tenant.priority * tenants[a].alone_us;
  });
  orders.push_back(smith);
  orders.push_back(in_turn(
      [&](std::size_t a, std::size_t b) { return tenants[a].tenant.start_us < tenants[b].tenant.start_us; }));
  orders.push_back(
      in_turn([&](std::size_t a, std::size_t b) { return tenants[a].alone_us > tenants[b].alone_us; }));
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

}  // namespace rondo
