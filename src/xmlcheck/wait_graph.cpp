#include <map>
#include <tuple>

#include "stages.hpp"

namespace rondo::xmlcheck {
namespace {

using msccl::Program;
using msccl::ThreadBlock;

/// The steps at both ends of a connection, in order.
struct Traffic {
  std::vector<int> sends = {};
  std::vector<int> receives = {};
};
using Connection = std::tuple<int, int, int>;  ///< sender, receiver, channel

std::string name_of(const Connection& connection) {
  const auto& [from, to, channel] = connection;
  return fmt::format("gpu {} to gpu {} on channel {}", from, to, channel);
}

void pair_up(const Program& program, const Connection& connection, const Traffic& traffic, int fifo_depth,
             WaitGraph& graph, Findings& findings) {
  const auto& [sends, receives] = traffic;
  const std::size_t pairs = std::min(sends.size(), receives.size());
  for (std::size_t n = 0; n < pairs; ++n) {
    const int sent = graph.step(program, sends[n]).count;
    const int received = graph.step(program, receives[n]).count;
    if (sent != received) {
      findings.add(graph.place(receives[n]), "receives {} chunks, but {} sends {} (number {} of {})",
                   received, graph.place(sends[n]), sent, n, name_of(connection));
    }
    graph.sender[static_cast<std::size_t>(receives[n])] = sends[n];
    const auto depth = static_cast<std::size_t>(fifo_depth);
    if (n >= depth) graph.made_room[static_cast<std::size_t>(sends[n])] = receives[n - depth];
  }
  if (sends.size() > pairs) {
    findings.add(graph.place(sends[pairs]), "sends number {} of {}, but only {} are received", pairs,
                 name_of(connection), pairs);
  } else if (receives.size() > pairs) {
    findings.add(graph.place(receives[pairs]), "receives number {} of {}, but only {} are sent", pairs,
                 name_of(connection), pairs);
  }
}

}  // namespace

WaitGraph build_wait_graph(const Program& program, int fifo_depth, Findings& findings) {
  WaitGraph graph;
  std::map<Connection, Traffic> traffic;
  std::vector<std::vector<int>> first(program.gpus.size());  // per GPU and threadblock: its step 0
  for (int g = 0; g < program.num_gpus(); ++g) {
    const auto& tbs = program.gpus[static_cast<std::size_t>(g)].tbs;
    for (int t = 0; t < static_cast<int>(tbs.size()); ++t) {
      const ThreadBlock& tb = tbs[static_cast<std::size_t>(t)];
      first[static_cast<std::size_t>(g)].push_back(static_cast<int>(graph.size()));
      for (int s = 0; s < static_cast<int>(tb.steps.size()); ++s) {
        const int n = static_cast<int>(graph.size());
        const msccl::StepType type = tb.steps[static_cast<std::size_t>(s)].type;
        graph.steps.push_back({.gpu = g, .tb = t, .step = s});
        graph.previous.push_back(s == 0 ? WaitGraph::kNone : n - 1);
        if (msccl::sends(type)) traffic[{g, tb.send_peer, tb.channel}].sends.push_back(n);
        if (msccl::receives(type)) traffic[{tb.recv_peer, g, tb.channel}].receives.push_back(n);
      }
    }
  }
  graph.dependency.assign(graph.size(), WaitGraph::kNone);
  graph.sender = graph.made_room = graph.dependency;
  for (int n = 0; n < static_cast<int>(graph.size()); ++n) {
    const auto& dependency = graph.step(program, n).dependency;
    if (!dependency) continue;
    const auto gpu = static_cast<std::size_t>(graph.steps[static_cast<std::size_t>(n)].gpu);
    graph.dependency[static_cast<std::size_t>(n)] =
        first[gpu][static_cast<std::size_t>(dependency->tb)] + dependency->step;
  }
  for (const auto& [connection, mine] : traffic) {
    pair_up(program, connection, mine, fifo_depth, graph, findings);
  }
  return graph;
}

namespace {

/// Follows waits among the steps that never run until a step repeats.
void report_ring(const WaitGraph& graph, const std::vector<int>& waits_left, Findings& findings) {
  const auto stuck = [&](int n) { return n >= 0 && waits_left[static_cast<std::size_t>(n)] > 0; };
  int at = 0;
  while (!stuck(at)) ++at;
  std::vector<int> path;
  std::vector<int> seen_at(graph.size(), -1);
  std::vector<const char*> reasons;
  while (seen_at[static_cast<std::size_t>(at)] < 0) {
    const auto i = static_cast<std::size_t>(at);
    seen_at[i] = static_cast<int>(path.size());
    path.push_back(at);
    if (stuck(graph.dependency[i])) {
      reasons.push_back("waits by depid for");
      at = graph.dependency[i];
    } else if (stuck(graph.sender[i])) {
      reasons.push_back("receives from");
      at = graph.sender[i];
    } else if (stuck(graph.made_room[i])) {
      reasons.push_back("needs the room that is made by");
      at = graph.made_room[i];
    } else {
      reasons.push_back("comes after");
      at = graph.previous[i];
    }
  }
  const auto begin = static_cast<std::size_t>(seen_at[static_cast<std::size_t>(at)]);
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t k = begin; k < path.size() && k < begin + kShown; ++k) {
    text += fmt::format("{} {} ", k == begin ? "which" : ("; " + graph.place(path[k])).c_str(), reasons[k]);
    text += graph.place(k + 1 < path.size() ? path[k + 1] : at);
  }
  if (path.size() - begin > kShown) text += fmt::format("; and {} more", path.size() - begin - kShown);
  findings.add(graph.place(at), "waits for itself: {}", text);
}

}  // namespace

void sort_steps(WaitGraph& graph, Findings& findings) {
  std::vector<int> waits_left(graph.size(), 0);
  std::vector<std::vector<int>> followers(graph.size());
  for (const auto* waits : {&graph.previous, &graph.dependency, &graph.sender, &graph.made_room}) {
    for (std::size_t n = 0; n < graph.size(); ++n) {
      const int earlier = (*waits)[n];
      if (earlier == WaitGraph::kNone) continue;
      ++waits_left[n];
      followers[static_cast<std::size_t>(earlier)].push_back(static_cast<int>(n));
    }
  }
  for (std::size_t n = 0; n < graph.size(); ++n) {
    if (waits_left[n] == 0) graph.order.push_back(static_cast<int>(n));
  }
  for (std::size_t k = 0; k < graph.order.size(); ++k) {
    for (const int follower : followers[static_cast<std::size_t>(graph.order[k])]) {
      if (--waits_left[static_cast<std::size_t>(follower)] == 0) graph.order.push_back(follower);
    }
  }
  if (graph.order.size() < graph.size()) report_ring(graph, waits_left, findings);
}

}  // namespace rondo::xmlcheck
