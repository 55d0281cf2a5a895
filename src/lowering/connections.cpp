#include "connections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "pairing.hpp"
#include "rondo/core/error.hpp"

namespace rondo::lowering {
namespace {

/// Connections, those with many batches in several pieces.
std::vector<Connection> deal(const std::vector<Batch>& batches, int max_steps) {
  std::map<std::pair<int, int>, std::vector<int>> carried;
  for (int b = 0; b < static_cast<int>(batches.size()); ++b) {
    const Batch& batch = batches[static_cast<std::size_t>(b)];
    carried[{batch.src, batch.dst}].push_back(b);
  }
  std::vector<Connection> connections;
  for (const auto& [ends, mine] : carried) {
    const auto limit = static_cast<std::size_t>(max_steps);
    const std::size_t pieces = (mine.size() + limit - 1) / limit;
    const std::size_t first = connections.size();
    for (std::size_t p = 0; p < pieces; ++p) connections.push_back({.src = ends.first, .dst = ends.second});
    for (std::size_t k = 0; k < mine.size(); ++k) {
      connections[first + k % pieces].batches.push_back(mine[k]);
    }
  }
  return connections;
}

/// Gives each connection the lowest channel that has room at both ends. Returns the number of channels.
int assign_channels(std::vector<Connection>& connections, int num_gpus, const msccl::Executor& executor) {
  const auto channels = static_cast<std::size_t>(executor.channels);
  std::vector<std::vector<int>> leaving(static_cast<std::size_t>(num_gpus), std::vector<int>(channels, 0));
  std::vector<std::vector<int>> entering = leaving;
  std::map<std::tuple<int, int, std::size_t>, bool> taken;
  std::size_t used = 1;
  // By offset, so that all GPUs fill a channel together.
  std::vector<std::size_t> order(connections.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto offset = [&](const Connection& c) { return (c.dst - c.src + num_gpus) % num_gpus; };
    return offset(connections[a]) < offset(connections[b]);
  });
  for (const std::size_t c : order) {
    Connection& connection = connections[c];
    auto& out = leaving[static_cast<std::size_t>(connection.src)];
    auto& in = entering[static_cast<std::size_t>(connection.dst)];
    std::size_t channel = 0;
    while (channel < channels &&
           (out[channel] >= executor.connections || in[channel] >= executor.connections ||
            taken.contains({connection.src, connection.dst, channel}))) {
      ++channel;
    }
    if (channel == channels) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("GPU {} to GPU {} needs a channel beyond the {} that {} has, with {} connections each: "
                      "use fewer chunks (--chunks of rondo solve), or fewer peers with --max-peers",
                      connection.src, connection.dst, executor.channels, executor.name,
                      executor.connections));
    }
    ++out[channel];
    ++in[channel];
    taken[{connection.src, connection.dst, channel}] = true;
    connection.channel = static_cast<int>(channel);
    used = std::max(used, channel + 1);
  }
  return static_cast<int>(used);
}

/// Threadblocks: one a pair, one for each end of a connection that is in none.
void make_tbs(const std::vector<Connection>& connections, const std::vector<Pair>& pairs,
              const std::vector<Batch>& batches, Plan& plan) {
  std::vector<int> sending(connections.size(), -1), receiving(connections.size(), -1);
  for (const auto& [in, out, fused] : pairs) {
    const Connection& from = connections[static_cast<std::size_t>(in)];
    const Connection& to = connections[static_cast<std::size_t>(out)];
    receiving[static_cast<std::size_t>(in)] = sending[static_cast<std::size_t>(out)] =
        static_cast<int>(plan.tbs.size());
    plan.tbs.push_back({.gpu = to.src, .send_peer = to.dst, .recv_peer = from.src, .channel = to.channel});
  }
  plan.sender.assign(batches.size(), -1);
  plan.receiver.assign(batches.size(), -1);
  for (std::size_t c = 0; c < connections.size(); ++c) {
    const Connection& connection = connections[c];
    if (sending[c] < 0) {
      sending[c] = static_cast<int>(plan.tbs.size());
      plan.tbs.push_back({.gpu = connection.src, .send_peer = connection.dst, .channel = connection.channel});
    }
    if (receiving[c] < 0) {
      receiving[c] = static_cast<int>(plan.tbs.size());
      plan.tbs.push_back({.gpu = connection.dst, .recv_peer = connection.src, .channel = connection.channel});
    }
    for (const int b : connection.batches) {
      plan.sender[static_cast<std::size_t>(b)] = sending[c];
      plan.receiver[static_cast<std::size_t>(b)] = receiving[c];
    }
  }
}

}  // namespace

std::optional<Plan> connect(const Traffic& traffic, int num_gpus, const msccl::Executor& executor,
                            int max_steps, Order order) {
  const std::vector<Batch>& batches = traffic.batches;
  std::vector<Connection> connections = deal(batches, max_steps);
  Plan plan;
  plan.num_channels = assign_channels(connections, num_gpus, executor);
  plan.fused.assign(batches.size(), -1);
  if (order == Order::by_transfer) {
    make_tbs(connections, {}, batches, plan);
    for (int b = 0; b < static_cast<int>(batches.size()); ++b) {
      plan.events.push_back({.batch = b, .is_arrival = false});
      plan.events.push_back({.batch = b, .is_arrival = true});
    }
    return plan;
  }
  const std::vector<Event> events = events_by_time(
      traffic, connections, order == Order::by_time ? std::nullopt : std::optional(kFifoDepth));
  if (events.size() < 2 * batches.size()) return std::nullopt;
  std::vector<Pair> pairs;
  if (order != Order::in_room_unfused) pairs = pair_connections(batches, connections, events, max_steps);
  make_tbs(connections, pairs, batches, plan);
  for (const Pair& pair : pairs) {
    for (const auto& [received, sent] : pair.fused) plan.fused[static_cast<std::size_t>(sent)] = received;
  }
  std::ranges::copy_if(events, std::back_inserter(plan.events), [&](const Event& event) {
    return event.is_arrival || plan.fused[static_cast<std::size_t>(event.batch)] < 0;
  });
  return plan;
}

}  // namespace rondo::lowering
