#include "connections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "rondo/core/error.hpp"

namespace rondo::lowering {
namespace {

/// One way from a GPU to another on one channel, with its batches in order.
struct Connection {
  int src = -1;
  int dst = -1;
  int channel = -1;
  std::vector<int> batches = {};
};

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

/// Which connection into a GPU shares a threadblock with which out of it.
class Pairing {
 public:
  Pairing(const std::vector<Batch>& batches, const std::vector<Connection>& connections, int max_steps)
      : batches_(batches),
        connections_(connections),
        max_steps_(max_steps),
        carrier_(batches.size()),
        passed_on_from_(batches.size(), -1) {
    for (int c = 0; c < static_cast<int>(connections.size()); ++c) {
      for (const int b : at(c).batches) carrier_[static_cast<std::size_t>(b)] = c;
    }
    find_candidates();
  }

  /// (incoming, outgoing) connections, those that fuse most first, each connection at most once a side.
  std::vector<std::pair<int, int>> choose() const {
    std::vector<std::pair<std::size_t, std::pair<int, int>>> ranked;
    for (const auto& [pair, fusable] : candidates_) {
      const std::size_t in = at(pair.first).batches.size();
      const std::size_t out = at(pair.second).batches.size();
      const bool worth_it = 2 * fusable.size() >= std::min(in, out);
      const bool fits = in + out - fusable.size() <= static_cast<std::size_t>(max_steps_);
      if (worth_it && fits) ranked.emplace_back(fusable.size(), pair);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<char> in_taken(connections_.size(), 0), out_taken(connections_.size(), 0);
    std::vector<std::pair<int, int>> chosen;
    for (const auto& [count, pair] : ranked) {
      char& in = in_taken[static_cast<std::size_t>(pair.first)];
      char& out = out_taken[static_cast<std::size_t>(pair.second)];
      if (in || out) continue;
      in = out = 1;
      chosen.push_back(pair);
    }
    return chosen;
  }

  /// The batches that a pair fuses: (received, sent on).
  const std::vector<std::pair<int, int>>& fusable(const std::pair<int, int>& pair) const {
    return candidates_.at(pair);
  }
  int carrier(int batch) const { return carrier_[static_cast<std::size_t>(batch)]; }

 private:
  const Connection& at(int c) const { return connections_[static_cast<std::size_t>(c)]; }

  /// Whether `sent` may leave together with what it passes on: nothing else is to leave between the two, but
  /// what leaves in the same way.
  bool may_leave_at_once(int received, int sent) const {
    const auto& out = at(carrier(sent)).batches;
    const auto own = std::lower_bound(out.begin(), out.end(), sent);
    return std::all_of(std::upper_bound(out.begin(), out.end(), received), own, [&](int between) {
      return passed_on_from_[static_cast<std::size_t>(between)] == carrier(received);
    });
  }

  void find_candidates() {
    for (int b = 0; b < static_cast<int>(batches_.size()); ++b) {
      const Batch& batch = batches_[static_cast<std::size_t>(b)];
      const int parent = batch.parents.front();
      if (parent < 0 || batch.chunks != batches_[static_cast<std::size_t>(parent)].chunks) continue;
      if (at(carrier(parent)).channel != at(carrier(b)).channel || !may_leave_at_once(parent, b)) continue;
      passed_on_from_[static_cast<std::size_t>(b)] = carrier(parent);
      candidates_[{carrier(parent), carrier(b)}].emplace_back(parent, b);
    }
  }

  const std::vector<Batch>& batches_;
  const std::vector<Connection>& connections_;
  int max_steps_;
  std::vector<int> carrier_;         ///< per batch: its connection
  std::vector<int> passed_on_from_;  ///< per batch that may leave at once: the connection it came over
  std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> candidates_;
};

/// Threadblocks: one a pair, one for each end of a connection that is in none.
void make_tbs(const std::vector<Connection>& connections, const std::vector<std::pair<int, int>>& pairs,
              const std::vector<Batch>& batches, Plan& plan) {
  std::vector<int> sending(connections.size(), -1), receiving(connections.size(), -1);
  for (const auto& [in, out] : pairs) {
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

Plan connect(const std::vector<Batch>& batches, int num_gpus, const msccl::Executor& executor,
             int max_steps) {
  std::vector<Connection> connections = deal(batches, max_steps);
  Plan plan;
  plan.num_channels = assign_channels(connections, num_gpus, executor);
  const Pairing pairing(batches, connections, max_steps);
  const std::vector<std::pair<int, int>> pairs = pairing.choose();
  make_tbs(connections, pairs, batches, plan);

  plan.fused.assign(batches.size(), 0);
  std::vector<int> passed_on(batches.size(), -1);
  for (const auto& pair : pairs) {
    for (const auto& [received, sent] : pairing.fusable(pair)) {
      passed_on[static_cast<std::size_t>(received)] = sent;
      plan.fused[static_cast<std::size_t>(sent)] = 1;
    }
  }
  // A fused batch leaves when its parent does. It waits for nothing else, so it may move forward.
  for (int b = 0; b < static_cast<int>(batches.size()); ++b) {
    if (plan.fused[static_cast<std::size_t>(b)]) continue;
    for (int next = b; next >= 0; next = passed_on[static_cast<std::size_t>(next)])
      plan.order.push_back(next);
  }
  return plan;
}

}  // namespace rondo::lowering
