#include <fmt/format.h>

#include <algorithm>

#include "runner.hpp"

namespace rondo::execution {
namespace {

/// What the step at which a lane stands waits for.
struct Wait {
  int lane = -1;  ///< the lane whose progress it needs; -1: none
  std::string words;
};

class Waits {
 public:
  Waits(const Program& program, const std::vector<int>& next, int slots) : program_(program), next_(next) {
    sent_.assign(program.connections.size(), 0);
    taken_ = sent_;
    sender_.assign(program.connections.size(), -1);
    receiver_ = sender_;
    for (std::size_t l = 0; l < program.lanes.size(); ++l) {
      const auto& steps = program.lanes[l].steps;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        const bool done = static_cast<int>(s) < next[l];
        if (steps[s].send_to >= 0) note(steps[s].send_to, static_cast<int>(l), done, sender_, sent_);
        if (steps[s].receive_from >= 0)
          note(steps[s].receive_from, static_cast<int>(l), done, receiver_, taken_);
      }
    }
    slots_ = slots;
  }

  bool done(int lane) const { return at(lane) >= static_cast<int>(lane_of(lane).steps.size()); }

  Wait of(int lane) const {
    const Step& step = lane_of(lane).steps[static_cast<std::size_t>(at(lane))];
    for (const StepRef& before : step.after) {
      if (at(before.lane) > before.step) continue;
      if (before.lane == lane && before.step == at(lane))
        return {-1, step.name + " waits for data that never arrives"};
      return {before.lane,
              fmt::format("{} waits for {}", step.name,
                          lane_of(before.lane).steps[static_cast<std::size_t>(before.step)].name)};
    }
    if (step.receive_from >= 0 && sent_[index(step.receive_from)] == taken_[index(step.receive_from)]) {
      const int peer = program_.connections[index(step.receive_from)].src;
      return {sender_[index(step.receive_from)], fmt::format("{} waits for gpu {} to send{}", step.name, peer,
                                                             next_words(sender_[index(step.receive_from)]))};
    }
    if (step.send_to >= 0 && sent_[index(step.send_to)] - taken_[index(step.send_to)] >= slots_) {
      const int peer = program_.connections[index(step.send_to)].dst;
      return {receiver_[index(step.send_to)],
              fmt::format("{} waits for gpu {} to receive what was sent before{}", step.name, peer,
                          next_words(receiver_[index(step.send_to)]))};
    }
    return {-1, step.name + " could continue"};
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  int at(int lane) const { return next_[index(lane)]; }
  const Lane& lane_of(int lane) const { return program_.lanes[index(lane)]; }

  static void note(int connection, int lane, bool done, std::vector<int>& owner, std::vector<int>& count) {
    owner[index(connection)] = lane;
    if (done) ++count[index(connection)];
  }

  std::string next_words(int lane) const {
    if (lane < 0) return ", which it never does";
    if (done(lane)) return ", which has no step left that does";
    return fmt::format(", which stands at {}", lane_of(lane).steps[index(at(lane))].name);
  }

  const Program& program_;
  const std::vector<int>& next_;
  int slots_ = 1;
  std::vector<int> sent_, taken_, sender_, receiver_;
};

}  // namespace

std::string describe_deadlock(const Program& program, const std::vector<int>& next, int slots) {
  constexpr std::size_t kMostLines = 12;
  const Waits waits(program, next, slots);
  const auto lanes = static_cast<int>(program.lanes.size());
  std::vector<int> blocked;
  for (int l = 0; l < lanes; ++l) {
    if (!waits.done(l)) blocked.push_back(l);
  }
  // From any blocked lane the waits lead into a cycle, or to a lane that waits for no other.
  std::vector<int> seen(program.lanes.size(), -1);
  std::vector<std::string> lines;
  bool circle = false;
  int lane = blocked.front();
  std::vector<int> path;
  while (lane >= 0 && !waits.done(lane) && seen[static_cast<std::size_t>(lane)] < 0) {
    seen[static_cast<std::size_t>(lane)] = static_cast<int>(path.size());
    path.push_back(lane);
    lane = waits.of(lane).lane;
  }
  std::size_t from = 0;
  if (lane >= 0 && !waits.done(lane)) {
    circle = true;
    from = static_cast<std::size_t>(seen[static_cast<std::size_t>(lane)]);
  } else {
    from = path.size() - std::min(path.size(), kMostLines);
  }
  for (std::size_t i = from; i < path.size(); ++i) lines.push_back(waits.of(path[i]).words);
  const std::size_t left_out = lines.size() > kMostLines ? lines.size() - kMostLines : 0;
  lines.resize(lines.size() - left_out);
  std::string text =
      fmt::format("deadlock: {} of {} lanes cannot continue; {}", blocked.size(), lanes,
                  circle ? "these wait for one another in a circle:" : "the end of a chain of waits:");
  for (const std::string& line : lines) text += "\n  " + line;
  if (left_out > 0) text += fmt::format("\n  and {} more", left_out);
  return text;
}

}  // namespace rondo::execution
