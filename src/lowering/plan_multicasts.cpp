#include "plan_multicasts.hpp"

#include <algorithm>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

using msccl::Range;
using msccl::Step;
using msccl::StepType;

class MulticastFinder {
 public:
  MulticastFinder(const msccl::Program& program, const std::vector<int>& node_of, PlanMessages& messages)
      : program_(program), node_of_(node_of), messages_(messages) {
    found_.stored_here.resize(program.gpus.size());
  }

  PlanMulticasts run(const lowering::MulticastSteps& steps) {
    for (const auto& [number, places] : steps) add(places);
    return std::move(found_);
  }

 private:
  using Place = PlanMessages::Step;

  const msccl::Gpu& gpu(int g) const { return program_.gpus[index(g)]; }
  const Step& step(const Place& place) const {
    const auto& [g, t, s] = place;
    return gpu(g).tbs[index(t)].steps[index(s)];
  }

  void add(std::vector<Place> places) {
    const int g = std::get<0>(places.front());
    std::erase_if(places, [&](const Place& place) {
      return node_of_[index(message(place).dst)] != node_of_[index(g)] ||
             (step(place).type != StepType::send && step(place).type != StepType::receive_copy_send);
    });
    if (places.size() < 2) return;
    PlanMulticast multicast{.ranks = {g}, .to = message(places.front()).landing};
    for (const Place& place : places) {
      const Message& mine = message(place);
      if (mine.landing != multicast.to || source(place) != source(places.front()) ||
          step(place).count != step(places.front()).count ||
          std::ranges::find(multicast.ranks, mine.dst) != multicast.ranks.end())
        return;
      multicast.messages.push_back(messages_.sent_by.at(place));
      multicast.ranks.push_back(mine.dst);
    }
    if (!belongs_here(g, source(places.front()), multicast.to)) return;
    std::ranges::sort(multicast.ranks);
    // Who receives it passes it on at once; else the first threadblock does.
    const auto by = std::ranges::find(places, StepType::receive_copy_send,
                                      [&](const Place& place) { return step(place).type; });
    const Place leader = by == places.end() ? places.front() : *by;
    found_.stored_here[index(g)][multicast.to.offset] = step(leader).count;
    for (const Place& place : places) {
      messages_.all[index(messages_.sent_by.at(place))].channel = -1 - std::get<1>(leader);
      if (place != leader) found_.instead[place] = leader;
    }
    found_.by_step[leader] = std::move(multicast);
  }

  const Message& message(const Place& place) const {
    return messages_.all[index(messages_.sent_by.at(place))];
  }
  Range source(const Place& place) const {
    return step(place).type == StepType::send ? step(place).src : step(place).dst;
  }

  /// Whether GPU g has at `to` what it sends from `from`, or will copy it there.
  bool belongs_here(int g, const Range& from, const Range& to) const {
    if (to.buffer != msccl::Buffer::output) return false;
    if (from == to) return true;
    for (const msccl::ThreadBlock& tb : gpu(g).tbs) {
      for (const Step& copy : tb.steps) {
        const int inside = from.offset - copy.src.offset;
        if (copy.type == StepType::copy && copy.src.buffer == from.buffer && inside >= 0 &&
            inside < copy.count && copy.dst == Range{.buffer = to.buffer, .offset = to.offset - inside})
          return true;
      }
    }
    return false;
  }

  const msccl::Program& program_;
  const std::vector<int>& node_of_;
  PlanMessages& messages_;
  PlanMulticasts found_;
};

}  // namespace

PlanMulticasts multicasts_of(const msccl::Program& program, const lowering::MulticastSteps& steps,
                             const std::vector<int>& node_of, PlanMessages& messages) {
  return MulticastFinder(program, node_of, messages).run(steps);
}

}  // namespace rondo
