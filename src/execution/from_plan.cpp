#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "layout.hpp"
#include "rondo/core/error.hpp"
#include "rondo/execution/program.hpp"
#include "rondo/mscclpp/check.hpp"
#include "rondo/mscclpp/unfolded.hpp"

namespace rondo::execution {
namespace {

using mscclpp::Action;
using mscclpp::Memory;
using mscclpp::Span;
using mscclpp::Unfolded;
using Kind = Action::Kind;

/// Every threadblock is a lane. What it does to the memory of another GPU is done there by a lane of its own,
/// which gets data and signals in the order in which the threadblock sends them.
class FromPlan {
 public:
  FromPlan(const Unfolded& plan, bool in_place, int root, Arithmetic arithmetic) : plan_(plan) {
    result_.coll = plan.collective;
    result_.in_place = in_place;
    result_.root = root;
    result_.knows_result = plan.collective != Collective::custom;
    result_.arithmetic = arithmetic;
    for (const Memory& memory : plan.memory) {
      result_.memory.push_back(memory.bytes);
      result_.input.push_back({memory.input, memory.input_bytes});
      result_.output.push_back({memory.output, memory.output_bytes});
    }
    const std::size_t gpus = plan.memory.size();
    const Memory& first = plan.memory.front();
    const std::size_t part =
        result_.knows_result ? first.input_bytes / plan.collective->input_parts(gpus) : first.input_bytes;
    result_.size_bytes = result_.knows_result ? part * plan.collective->num_parts(gpus) : first.input_bytes;
    if (result_.knows_result) add_deliveries(result_, part);
  }

  Program translate() && {
    for (std::size_t g = 0; g < plan_.tbs.size(); ++g) {
      first_lane_.push_back(static_cast<int>(result_.lanes.size()));
      for (std::size_t t = 0; t < plan_.tbs[g].size(); ++t)
        result_.lanes.push_back({.gpu = static_cast<int>(g)});
    }
    for (std::size_t g = 0; g < plan_.tbs.size(); ++g) {
      releases_.emplace_back(plan_.semaphores[g].size());
      for (std::size_t t = 0; t < plan_.tbs[g].size(); ++t) add_tb(static_cast<int>(g), static_cast<int>(t));
    }
    for (const Wait& wait : waits_) {
      auto& after = at(wait.step).after;
      const auto& done = *wait.events;
      // More than there will be: waits for its own step, that is for ever.
      if (wait.count > done.size()) after.push_back(wait.step);
      for (std::size_t k = wait.all ? 0 : wait.count - 1; k < std::min(wait.count, done.size()); ++k)
        after.push_back(done[k]);
    }
    join_packets();
    return std::move(result_);
  }

 private:
  struct Wait {
    StepRef step;
    const std::vector<StepRef>* events = nullptr;
    std::size_t count = 0;  ///< how many of them have to be over
    bool all = false;       ///< each of them; else the last
  };
  struct PacketRead {
    StepRef step;
    Span span;
  };

  Step& at(const StepRef& ref) {
    return result_.lanes[static_cast<std::size_t>(ref.lane)].steps[static_cast<std::size_t>(ref.step)];
  }
  StepRef append(int lane, Step step) {
    auto& steps = result_.lanes[static_cast<std::size_t>(lane)].steps;
    if (step.name.empty()) step.name = name_;
    steps.push_back(std::move(step));
    return {lane, static_cast<int>(steps.size()) - 1};
  }

  int new_connection(int src, int dst) {
    result_.connections.push_back({src, dst});
    return static_cast<int>(result_.connections.size()) - 1;
  }

  /// The lane that acts at another GPU for the threadblock.
  struct Agent {
    int lane = -1;
    int to = -1;    ///< connection
    int back = -1;  ///< connection
  };
  Agent& agent(int gpu) {
    const auto [it, is_new] = agents_.try_emplace({gpu_, tb_, gpu});
    if (is_new) {
      it->second.lane = static_cast<int>(result_.lanes.size());
      it->second.to = new_connection(gpu_, gpu);
      result_.lanes.push_back({.gpu = gpu});
    }
    return it->second;
  }

  /// Sends bytes (none: a signal, a request), which the agent writes.
  StepRef send(int gpu, std::size_t src, std::size_t bytes, std::size_t dst) {
    Agent& there = agent(gpu);
    append(lane_, {.send_to = there.to, .src = src, .bytes = bytes});
    return append(there.lane, {.receive_from = there.to,
                               .dst = dst,
                               .bytes = bytes,
                               .name = name_ + " at gpu " + std::to_string(gpu)});
  }

  void add_tb(int g, int t) {
    gpu_ = g;
    tb_ = t;
    lane_ = first_lane_[static_cast<std::size_t>(g)] + t;
    std::map<int, std::size_t> acquired, met;
    for (const Action& action : plan_.tbs[static_cast<std::size_t>(g)][static_cast<std::size_t>(t)]) {
      name_ = mscclpp::place(g, t, action.op);
      switch (action.kind) {
        case Kind::sync:
        case Kind::flush:
          break;
        case Kind::barrier: {
          auto& meeting = barriers_[{g, action.id, met[action.id]++}];
          meeting.push_back(append(lane_, {}));
          waits_.push_back({append(lane_, {}), &meeting, static_cast<std::size_t>(action.num_tbs), true});
          break;
        }
        case Kind::signal: {
          const int peer = plan_.channels[static_cast<std::size_t>(action.channel)].peer;
          signals_[action.channel].push_back(send(peer, kNowhere, 0, kNowhere));
          break;
        }
        case Kind::wait: {
          const int other = plan_.channels[static_cast<std::size_t>(action.channel)].other_end;
          waits_.push_back({append(lane_, {}), &signals_[other], ++waited_[action.channel]});
          break;
        }
        case Kind::release:
          releases_[static_cast<std::size_t>(g)][static_cast<std::size_t>(action.id)].push_back(
              append(lane_, {}));
          break;
        case Kind::acquire: {
          const auto id = static_cast<std::size_t>(action.id);
          const auto first = static_cast<std::size_t>(plan_.semaphores[static_cast<std::size_t>(g)][id]);
          const StepRef step = append(lane_, {});
          if (const std::size_t count = ++acquired[action.id]; count > first)
            waits_.push_back({step, &releases_[static_cast<std::size_t>(g)][id], count - first, true});
          break;
        }
        case Kind::move:
          move(action);
          break;
      }
    }
  }

  /// Room for a sum that is being made, one a threadblock.
  std::size_t temporary(std::size_t bytes) {
    auto& [offset, room] = temporaries_[lane_];
    if (room < bytes) {
      std::size_t& memory = result_.memory[static_cast<std::size_t>(gpu_)];
      offset = memory;
      room = bytes;
      memory += bytes;
    }
    return offset;
  }

  void read_packets(const StepRef& step, const Span& span, const Action& action) {
    if (span.packets && action.channel < 0) packet_reads_.push_back({step, span});
  }

  void move(const Action& action) {
    const std::size_t bytes = action.sources.front().bytes;
    std::size_t from = action.sources.front().offset;
    const bool is_local = action.sources.size() == 1 && action.sources.front().gpu == gpu_;
    if (is_local) {
      if (action.sources.front().packets) read_packets(append(lane_, {}), action.sources.front(), action);
    } else {
      result_.combines = result_.combines || action.sources.size() > 1;
      from = temporary(bytes);
      for (std::size_t s = 0; s < action.sources.size(); ++s)
        add_source(action, action.sources[s], from, s == 0);
    }
    for (const Span& target : action.targets) {
      const StepRef written = target.gpu == gpu_
                                  ? append(lane_, {.src = from, .dst = target.offset, .bytes = bytes})
                                  : send(target.gpu, from, bytes, target.offset);
      if (target.packets) packet_writes_[{target.gpu, target.offset}] = {written, target.bytes};
    }
  }

  void add_source(const Action& action, const Span& source, std::size_t sum, bool is_first) {
    if (source.gpu == gpu_) {
      read_packets(append(lane_, {.src = source.offset, .dst = sum, .bytes = source.bytes, .add = !is_first}),
                   source, action);
      return;
    }
    send(source.gpu, kNowhere, 0, kNowhere);
    Agent& there = agent(source.gpu);
    if (there.back < 0) there.back = new_connection(source.gpu, gpu_);
    append(there.lane, {.send_to = there.back, .src = source.offset, .bytes = source.bytes});
    append(lane_,
           {.receive_from = there.back, .src = is_first ? kNowhere : sum, .dst = sum, .bytes = source.bytes});
  }

  /// Readers of packets wait for all who write them.
  void join_packets() {
    for (const PacketRead& read : packet_reads_) {
      std::size_t there = 0;
      const std::size_t end = read.span.offset + read.span.bytes;
      auto it = packet_writes_.upper_bound({read.span.gpu, read.span.offset});
      if (it != packet_writes_.begin()) --it;
      for (; it != packet_writes_.end() && std::pair(read.span.gpu, end) > it->first; ++it) {
        if (it->first.first != read.span.gpu) continue;
        const std::size_t begin = it->first.second, last = begin + it->second.second;
        if (last <= read.span.offset) continue;
        there += std::min(end, last) - std::max(read.span.offset, begin);
        at(read.step).after.push_back(it->second.first);
      }
      if (there < read.span.bytes) at(read.step).after.push_back(read.step);
    }
  }

  const Unfolded& plan_;
  Program result_;
  std::vector<int> first_lane_;
  std::map<std::tuple<int, int, int>, Agent> agents_;        ///< by GPU, threadblock and peer
  std::map<int, std::vector<StepRef>> signals_;              ///< by channel: where they arrive
  std::map<int, std::size_t> waited_;                        ///< by channel: how often
  std::vector<std::vector<std::vector<StepRef>>> releases_;  ///< per GPU and semaphore
  std::map<std::tuple<int, int, std::size_t>, std::vector<StepRef>> barriers_;
  std::vector<Wait> waits_;
  std::vector<PacketRead> packet_reads_;
  std::map<std::pair<int, std::size_t>, std::pair<StepRef, std::size_t>> packet_writes_;
  std::map<int, std::pair<std::size_t, std::size_t>> temporaries_;  ///< by lane: offset, bytes
  int gpu_ = 0, tb_ = 0, lane_ = 0;
  std::string name_;
};

}  // namespace

Program from_plan(const mscclpp::Plan& plan, double bytes, Arithmetic arithmetic) {
  // At chunks of one unit a GPU, how many there are shows.
  const auto slices = static_cast<std::size_t>(mscclpp::num_slices(plan));
  const Unfolded small = mscclpp::unfold(plan, mscclpp::telling_chunk_bytes(plan));
  const std::size_t gpus = small.memory.size();
  const Memory& first = small.memory.front();
  const std::size_t parts = small.collective == Collective::custom ? 1 : small.collective->num_parts(gpus);
  const std::size_t part_bytes = small.collective == Collective::custom
                                     ? std::max(first.input_bytes, first.output_bytes)
                                     : first.input_bytes / small.collective->input_parts(gpus);
  const std::size_t chunks = parts * part_bytes / small.chunk_bytes;
  const std::size_t unit = slices * std::lcm(static_cast<std::size_t>(plan.alignment), arithmetic.size());
  const std::size_t chunk = rounded_up(bytes / static_cast<double>(chunks), unit);
  double user = 0, all = 0;
  for (const Memory& memory : small.memory) {
    const double scale = static_cast<double>(chunk) / static_cast<double>(small.chunk_bytes);
    user += scale * static_cast<double>(memory.scratch);
    all += scale * static_cast<double>(memory.bytes);
  }
  check_room(gpus, user, all);
  const Unfolded unfolded = mscclpp::unfold(plan, chunk);
  const Memory& memory = unfolded.memory.front();
  const std::size_t message =
      unfolded.collective == Collective::allgather ? memory.output_bytes : memory.input_bytes;
  if (message < plan.min_bytes || message > plan.max_bytes) {
    throw Error(ExitCode::usage, fmt::format("--bytes makes messages of {} bytes; the plan is for {} to {}",
                                             message, plan.min_bytes, plan.max_bytes));
  }
  int root = 0;
  if (unfolded.collective->has_root) root = mscclpp::check(plan, false).root.value_or(0);
  Program program = FromPlan(unfolded, plan.in_place, root, arithmetic).translate();
  program.name = plan.name;
  return program;
}

}  // namespace rondo::execution
