#include "runner.hpp"

#include <fmt/format.h>

#include <cstring>
#include <thread>
#include <utility>

namespace rondo::execution {
namespace {

/// What every message begins with.
struct Head {
  std::int32_t connection;
  std::int32_t acknowledges;  ///< 1: the receiver took a message, whose slot is free again
};

}  // namespace

Runner::Runner(const Program& program, const Deal& deal, Exchange& exchange, int slots,
               std::vector<Bytes>& memory)
    : program_(program),
      deal_(deal),
      exchange_(exchange),
      memory_(memory),
      next_(program.lanes.size(), 0),
      waiting_(program.lanes.size()),
      sender_(program.connections.size(), -1),
      receiver_(program.connections.size(), -1),
      free_slots_(program.connections.size(), slots),
      arrived_(program.connections.size()),
      counters_(count, 0) {
  for (std::size_t l = 0; l < program.lanes.size(); ++l) {
    const Lane& lane = program.lanes[l];
    for (const Step& step : lane.steps) {
      if (step.send_to >= 0) sender_[static_cast<std::size_t>(step.send_to)] = static_cast<int>(l);
      if (step.receive_from >= 0)
        receiver_[static_cast<std::size_t>(step.receive_from)] = static_cast<int>(l);
    }
    if (!deal.mine(lane.gpu)) continue;
    counters_[unfinished] += static_cast<std::int64_t>(lane.steps.size());
    runnable_.push_back(static_cast<int>(l));
  }
}

RunOutcome Runner::run() {
  bool idle = true;
  while (true) {
    idle = true;
    while (auto arrival = exchange_.poll()) {
      deliver(std::move(*arrival));
      idle = false;
    }
    // After a fault this rank only receives messages, so that all ranks become idle.
    for (std::size_t n = runnable_.size(); n > 0 && counters_[faults] == 0; --n) {
      const int lane = runnable_.front();
      runnable_.pop_front();
      advance(lane);
      idle = false;
    }
    if (!idle) continue;
    if (quiescent()) break;
    std::this_thread::yield();
  }
  outcome_.finished = last_sums_[unfinished] == 0 && last_sums_[faults] == 0;
  outcome_.next = next_;
  for (std::size_t c = 0; c < arrived_.size() && outcome_.finished; ++c) {
    if (arrived_[c].empty()) continue;
    const Connection& connection = program_.connections[c];
    outcome_.faults.push_back(fmt::format("gpu {} never receives {} message(s) that gpu {} sent to it",
                                          connection.dst, arrived_[c].size(), connection.src));
  }
  return std::move(outcome_);
}

/// Runs a lane until its end or until it has to wait; then something else wakes it.
void Runner::advance(int l) {
  const auto index = static_cast<std::size_t>(l);
  const Lane& lane = program_.lanes[index];
  while (next_[index] < static_cast<int>(lane.steps.size()) && counters_[faults] == 0) {
    const Step& step = lane.steps[static_cast<std::size_t>(next_[index])];
    if (!ready(step, l)) return;
    perform(step, lane);
    ++next_[index];
    ++counters_[steps];
    --counters_[unfinished];
    wake(waiting_[index]);
  }
}

bool Runner::ready(const Step& step, int lane) {
  for (const StepRef& before : step.after) {
    if (next_[static_cast<std::size_t>(before.lane)] > before.step) continue;
    waiting_[static_cast<std::size_t>(before.lane)].push_back(lane);
    return false;
  }
  // An arrival or an acknowledgement wakes the lane.
  if (step.receive_from >= 0 && arrived_[static_cast<std::size_t>(step.receive_from)].empty()) return false;
  return step.send_to < 0 || free_slots_[static_cast<std::size_t>(step.send_to)] > 0;
}

void Runner::perform(const Step& step, const Lane& lane) {
  Bytes& memory = memory_[static_cast<std::size_t>(lane.gpu)];
  const std::byte* value = step.src == kNowhere ? nullptr : memory.data() + step.src;
  Bytes message;
  if (step.receive_from >= 0) {
    auto& queue = arrived_[static_cast<std::size_t>(step.receive_from)];
    message = std::move(queue.front());
    queue.pop_front();
    if (message.size() - sizeof(Head) != step.bytes) {
      outcome_.faults.push_back(fmt::format("{} receives {} bytes, but {} were sent", step.name, step.bytes,
                                            message.size() - sizeof(Head)));
      ++counters_[faults];
      return;
    }
    post(program_.connections[static_cast<std::size_t>(step.receive_from)].src, step.receive_from, true,
         nullptr, 0);
    std::byte* body = message.data() + sizeof(Head);
    if (value != nullptr) program_.arithmetic.combine({body, step.bytes}, {value, step.bytes});
    value = body;
  }
  if (step.dst != kNowhere && value != nullptr && step.bytes > 0) {
    std::byte* to = memory.data() + step.dst;
    if (step.add) {
      program_.arithmetic.combine({to, step.bytes}, {value, step.bytes});
    } else {
      std::memmove(to, value, step.bytes);
    }
  }
  if (step.send_to >= 0) {
    const auto connection = static_cast<std::size_t>(step.send_to);
    --free_slots_[connection];
    ++outcome_.messages;
    outcome_.bytes += static_cast<std::int64_t>(step.bytes);
    post(program_.connections[connection].dst, step.send_to, false, value, step.bytes);
  }
}

void Runner::post(int gpu, int connection, bool acknowledge, const std::byte* data, std::size_t bytes) {
  const Head head{connection, acknowledge ? 1 : 0};
  Bytes message(sizeof head + bytes);
  std::memcpy(message.data(), &head, sizeof head);
  if (bytes > 0) std::memcpy(message.data() + sizeof head, data, bytes);
  exchange_.send(deal_.rank_of(gpu), std::move(message));
  ++counters_[sent];
}

void Runner::deliver(Arrival arrival) {
  ++counters_[received];
  Head head{};
  std::memcpy(&head, arrival.bytes.data(), sizeof head);
  const auto connection = static_cast<std::size_t>(head.connection);
  if (head.acknowledges == 1) {
    ++free_slots_[connection];
    runnable_.push_back(sender_[connection]);
    return;
  }
  arrived_[connection].push_back(std::move(arrival.bytes));
  if (receiver_[connection] >= 0) runnable_.push_back(receiver_[connection]);
}

void Runner::wake(std::vector<int>& lanes) {
  runnable_.insert(runnable_.end(), lanes.begin(), lanes.end());
  lanes.clear();
}

/// Called while idle. Sums the counters of all ranks repeatedly. If two sums in a row are equal and every
/// sent message has been received, no rank acted between its two answers, so that at some moment all ranks
/// were idle with no message in flight: the program cannot continue.
bool Runner::quiescent() {
  if (!summing_) {
    exchange_.start_sum(counters_);
    summing_ = true;
    return false;
  }
  const auto sums = exchange_.finished_sum();
  if (!sums) return false;
  summing_ = false;
  const bool at_rest = *sums == last_sums_ && (*sums)[sent] == (*sums)[received];
  last_sums_ = *sums;
  return at_rest;
}

}  // namespace rondo::execution
