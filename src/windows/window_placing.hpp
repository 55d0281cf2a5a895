#pragma once

#include <cstdint>
#include <vector>

#include "window_solver.hpp"

namespace rondo {

/// In which order transfers are placed that no window has moved.
enum class Order : std::uint8_t { early_between_windows, late };

/// Which transfers may take yet another way, the one that arrives first, where their place in the order
/// leaves them no better one: answers know no order of what takes detours over the same link.
enum class Free : std::uint8_t { none, moved, members };

/// Which windows' answers to place, and how.
struct Attempt {
  std::vector<char> which;
  Order order = Order::early_between_windows;
  Free free = Free::none;
};

/// The plan with these answers; justified where it is not much later.
TransferPlan placed(const PlanView& view, const std::vector<Window>& windows,
                    const std::vector<WindowAnswer>& answers, const Attempt& attempt);

}  // namespace rondo
