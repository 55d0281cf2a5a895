#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "assemble.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/lowering/lowering.hpp"
#include "switch_use.hpp"

namespace rondo {
namespace {

using lowering::Excess;
using lowering::Layout;
using lowering::Order;
using lowering::Plan;
using lowering::StepGraph;
using msccl::Executor;
using msccl::Program;

/// Nops make threadblocks longer than their share of batches; each attempt leaves more room for them.
constexpr int kMaxAttempts = 12;

constexpr std::array<std::string_view, 4> kReductions = {"sum", "prod", "max", "min"};

/// As custom where the executor does not know it: other GPUs than all, and parts of different sizes, no
/// executor knows.
Collective known_coll(const Demand& demand, const Executor& executor) {
  if (!demand.shape().is_plain()) return Collective::custom;
  const Collective collective = demand.collective();
  const bool fallback =
      !msccl::spelling(executor, collective) && msccl::spelling(executor, Collective::custom);
  return fallback ? Collective::custom : collective;
}

/// The name goes into an attribute, and executors keep few characters of it.
std::string name_of(const ProvenSchedule& proven, const LoweringOptions& options) {
  const std::size_t longest = options.executor->name_length;
  if (options.name.size() > longest) {
    throw Error(ExitCode::usage, fmt::format("the name has {} characters; {} keeps {}", options.name.size(),
                                             options.executor->name, longest));
  }
  if (!options.name.empty()) return options.name;
  std::string name = fmt::format("rondo {} {} {}", to_string(proven.demand.collective()),
                                 format_size(proven.demand.size_bytes()), proven.topology.name());
  std::replace(name.begin(), name.end(), ' ', '_');
  return name.substr(0, longest);
}

void check_options(const LoweringOptions& options) {
  const auto positive = [](const char* what, int value) {
    if (value < 1)
      throw Error(ExitCode::usage, fmt::format("{} is {}, but has to be at least 1", what, value));
  };
  positive("--instances", options.instances);
  positive("--max-peers", options.max_peers.value_or(1));
  positive("--max-steps", options.max_steps.value_or(1));
  if (std::ranges::find(kReductions, options.redop) == kReductions.end()) {
    throw Error(ExitCode::usage,
                fmt::format("--redop is '{}'; known are: {}", options.redop, fmt::join(kReductions, ", ")));
  }
  if (options.max_bytes != 0 && options.max_bytes < options.min_bytes) {
    throw Error(ExitCode::usage, fmt::format("--max-bytes is {}, less than --min-bytes {}", options.max_bytes,
                                             options.min_bytes));
  }
}

/// What stays the same however the connections are dealt over threadblocks.
struct Prepared {
  Layout layout;
  std::vector<lowering::SwitchSum> sums;
  lowering::Traffic traffic;
  Program program;  ///< without GPUs and channels
};

/// The transfers between GPUs of chunks that are not `summed` by a switch, where plans of MSCCL++ can say
/// that. Throws Error(unavailable) for what no executor can do.
std::vector<Delivery> moved(const ProvenSchedule& proven, const std::vector<char>& summed) {
  for (const Contribution& contribution : proven.demand.contributions()) {
    if (contribution.held.empty()) continue;
    throw Error(ExitCode::unavailable,
                fmt::format("GPU {} holds a partial sum at first ('held'), for which MSCCL programs have no "
                            "buffer; give a demand without",
                            contribution.held.front().gpu.value));
  }
  Transfers transfers = transfers_of(proven.topology, proven.demand, proven.schedule.sends);
  for (const int send : transfers.added_into) {
    if (send < 0) continue;
    const Send& sum = proven.schedule.sends[index(send)];
    if (!summed.empty() && summed[sum.chunk.index()]) continue;
    const NodeId node = proven.topology.link(sum.link).src;
    const std::string& name = proven.topology.node(node).name;
    throw Error(
        ExitCode::unavailable,
        fmt::format("switch {}{} adds ('reduce'), which {}; make a schedule for the fabric with \"reduce\": "
                    "false",
                    node.value, name.empty() ? "" : " (" + name + ")",
                    summed.empty() ? "MSCCL programs cannot say"
                                   : "plans of MSCCL++ can say only of one switch inside a node that adds "
                                     "what all GPUs have and gives the sum to all"));
  }
  if (summed.empty()) return std::move(transfers.deliveries);
  std::vector<char> is_moved;
  for (const Delivery& delivery : transfers.deliveries) is_moved.push_back(!summed[delivery.chunk.index()]);
  keep_marked(transfers.deliveries, is_moved);
  return std::move(transfers.deliveries);
}

/// Chunks that lie side by side are one sum.
std::vector<lowering::SwitchSum> sums_of(const Layout& layout, const std::vector<char>& summed,
                                         int instances) {
  std::vector<lowering::SwitchSum> sums;
  for (int instance = 0; instance < instances; ++instance) {
    for (int c = 0; c < static_cast<int>(summed.size()); ++c) {
      if (!summed[index(c)]) continue;
      lowering::SwitchSum sum{.from = *layout.home(c, 0),
                              .to = *layout.wanted_at(c, 0),
                              .count = layout.length(c),
                              .instance = instance};
      sum.from.offset += instance * layout.instance_stride(c);
      sum.to.offset += instance * layout.instance_stride(c);
      sums.push_back(sum);
    }
  }
  return sums;
}

/// `summed`: chunks that switches add up; empty where none may.
Prepared prepare(const ProvenSchedule& proven, const LoweringOptions& options,
                 const std::vector<char>& summed) {
  const Executor& executor = *options.executor;
  const Collective coll = known_coll(proven.demand, executor);
  const auto spelled = msccl::spelling(executor, coll);
  if (!spelled) {
    throw Error(ExitCode::unavailable,
                fmt::format("{} does not know {}{}; --executor msccl does", executor.name,
                            to_string(proven.demand.collective()), describe(proven.demand.shape())));
  }
  if (options.in_place && !proven.demand.shape().is_plain()) {
    throw Error(
        ExitCode::usage,
        fmt::format("{}{} in place is not known; give --placement out-of-place, or of equal parts in a "
                    "group solve with --relay none",
                    to_string(proven.demand.collective()), describe(proven.demand.shape())));
  }
  std::vector<Delivery> deliveries = lowering::needed_in_order(proven.demand, moved(proven, summed), summed);
  if (options.max_peers) {
    deliveries = lowering::needed_in_order(
        proven.demand, lowering::limit_peers(proven.topology, std::move(deliveries), *options.max_peers),
        summed);
  }
  Prepared parts = {.layout = Layout(proven.demand, {.in_place = options.in_place,
                                                     .in_turn = coll == Collective::custom,
                                                     .instances = options.instances}),
                    .sums = {},
                    .traffic = {},
                    .program = {}};
  parts.sums = sums_of(parts.layout, summed, options.instances);
  parts.traffic = lowering::merge(deliveries, parts.layout, executor.count);
  parts.program.name = name_of(proven, options);
  parts.program.protocol = options.protocol;
  parts.program.coll = coll;
  parts.program.coll_spelling = *spelled;
  parts.program.chunks_per_loop = parts.layout.chunks_per_loop();
  parts.program.in_place = options.in_place;
  parts.program.out_of_place = !options.in_place;
  parts.program.min_bytes = options.min_bytes;
  parts.program.max_bytes = options.max_bytes;
  parts.program.redop = proven.demand.has_several_sources() ? options.redop : "nop";
  return parts;
}

lowering::Lowered build(const Prepared& parts, const LoweringOptions& options, int batches_per_tb) {
  const int num_gpus = parts.layout.num_gpus();
  const auto lowered = [&](Order order) -> std::optional<std::pair<Plan, StepGraph>> {
    const auto plan = lowering::connect(parts.traffic, num_gpus, *options.executor, batches_per_tb, order);
    if (!plan) return std::nullopt;
    StepGraph graph = lowering::make_steps(parts.traffic, *plan, parts.layout, options.reuse_scratch);
    lowering::remove_implied_waits(graph, *plan);
    if (!lowering::ends_within(graph, *plan, lowering::kFifoDepth)) return std::nullopt;
    return std::pair(*plan, std::move(graph));
  };
  // In the order of transfers every program ends, whatever the connections hold; sums need the schedule's.
  std::vector<Order> orders = {Order::by_time, Order::in_room, Order::in_room_unfused};
  if (parts.traffic.order.empty()) orders.push_back(Order::by_transfer);
  std::optional<std::pair<Plan, StepGraph>> made;
  for (const Order order : orders) {
    if (!made) made = lowered(order);
  }
  if (!made) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("with {} messages in a connection no program of the schedule's partial sums ends: some "
                    "are sent on while too many others are under way; use fewer chunks (--chunks of rondo "
                    "solve) or another engine",
                    lowering::kFifoDepth));
  }
  const auto& [plan, graph] = *made;
  lowering::Lowered lowered_all = {.program = parts.program, .sums = parts.sums};
  lowered_all.program.num_channels = options.instances * plan.num_channels;
  lowered_all.program.gpus =
      lowering::assemble(graph, parts.traffic.batches, plan, parts.layout, options.instances,
                         options.executor->count, lowered_all.multicasts);
  return lowered_all;
}

lowering::Lowered lower_rest(const ProvenSchedule& proven, const LoweringOptions& options,
                             const std::vector<char>& summed) {
  check_options(options);
  const Executor& executor = *options.executor;
  const Prepared parts = prepare(proven, options, summed);
  const int max_steps = std::min(options.max_steps.value_or(executor.steps), executor.steps);
  int batches_per_tb = max_steps;
  for (int attempt = 1;; ++attempt) {
    lowering::Lowered made = build(parts, options, batches_per_tb);
    const std::optional<Excess> excess = lowering::beyond_caps(made.program, executor, max_steps);
    if (!excess) return made;
    const bool steps_only = excess->cap == lowering::kStepsCap;
    if (steps_only && attempt < kMaxAttempts && batches_per_tb > 1) {
      batches_per_tb = std::max(1, static_cast<int>(batches_per_tb * max_steps / excess->figure) - 1);
      continue;
    }
    throw Error(ExitCode::unavailable,
                fmt::format("{} takes at most {} as {}, but {} has {}: {}", executor.name, excess->allowed,
                            excess->cap, excess->where, excess->figure, excess->remedy));
  }
}

}  // namespace

Program lower(const ProvenSchedule& proven, const LoweringOptions& options) {
  return lower_rest(proven, options, {}).program;
}

lowering::Lowered lowering::lower_with_switches(const ProvenSchedule& proven, const LoweringOptions& options,
                                                const std::vector<int>& node_of) {
  return lower_rest(proven, options, summed_by_switch(proven, node_of));
}

}  // namespace rondo
