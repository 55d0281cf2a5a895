#include "random_plan_run.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "rondo/core/error.hpp"
#include "rondo/mscclpp/unfolded.hpp"

namespace rondo::test {
namespace {

using mscclpp::Action;
using mscclpp::ChannelType;
using mscclpp::Span;
using mscclpp::Unfolded;
using Kind = Action::Kind;

class PlanRun {
 public:
  PlanRun(const Unfolded& plan, Random& random)
      : plan_(plan), random_(random), signals_(plan.channels.size(), 0), ports_(plan.channels.size()) {
    for (std::size_t g = 0; g < plan.memory.size(); ++g) {
      memory_.emplace_back(plan.memory[g].bytes);
      for (std::uint64_t& cell : memory_.back()) cell = random.next();
      Random data(1000 + g);
      for (std::size_t i = 0; i < plan.memory[g].input_bytes; ++i)
        memory_[g][plan.memory[g].input + i] = data.next();
      done_.emplace_back();
      semaphores_.push_back(plan.semaphores[g]);
      for (const auto& tb : plan.tbs[g]) done_.back().emplace_back(tb.size(), false);
    }
    ended_.assign(memory_.size(), false);
    outputs_.resize(memory_.size());
  }

  std::optional<PlanOutputs> outputs() {
    while (true) {
      note_ends();
      struct Choice {
        std::size_t g, t, a;
      };
      std::vector<Choice> ready;
      for (std::size_t g = 0; g < done_.size(); ++g) {
        for (std::size_t t = 0; t < done_[g].size(); ++t) {
          for (const std::size_t a : open(g, t)) {
            if (may(g, plan_.tbs[g][t][a])) ready.push_back({g, t, a});
          }
        }
      }
      std::vector<std::size_t> busy;
      for (std::size_t c = 0; c < ports_.size(); ++c) {
        if (!ports_[c].empty()) busy.push_back(c);
      }
      if (ready.empty() && busy.empty()) break;
      const std::size_t pick = random_.below(ready.size() + busy.size());
      if (pick < ready.size()) {
        act(ready[pick].g, plan_.tbs[ready[pick].g][ready[pick].t][ready[pick].a]);
        done_[ready[pick].g][ready[pick].t][ready[pick].a] = true;
      } else {
        const std::size_t c = busy[pick - ready.size()];
        const Action* action = ports_[c].front();
        ports_[c].pop_front();
        if (action->kind == Kind::signal)
          ++signals_[c];
        else
          move(*action);
      }
    }
    if (!std::ranges::all_of(ended_, [](bool ended) { return ended; })) return std::nullopt;
    // What is left over would meet the next run.
    for (const int count : signals_) {
      if (count != 0) return std::nullopt;
    }
    if (semaphores_ != plan_.semaphores) return std::nullopt;
    PlanOutputs all;
    for (const auto& output : outputs_) all.insert(all.end(), output.begin(), output.end());
    return all;
  }

 private:
  /// What no sync is before, and nothing of the same thread.
  std::vector<std::size_t> open(std::size_t g, std::size_t t) const {
    const auto& actions = plan_.tbs[g][t];
    std::vector<std::size_t> all;
    std::vector<int> threads;
    for (std::size_t a = 0; a < actions.size(); ++a) {
      const bool is_sync = actions[a].kind == Kind::sync || actions[a].kind == Kind::barrier;
      if (done_[g][t][a]) continue;
      if (is_sync) {
        if (all.empty() && threads.empty()) all.push_back(a);
        return all;
      }
      const int thread = actions[a].thread;
      if (thread == Action::kAllThreads) {
        all.push_back(a);
      } else if (std::ranges::count(threads, thread) == 0) {
        threads.push_back(thread);
        all.push_back(a);
      }
    }
    return all;
  }

  bool may(std::size_t g, const Action& action) {
    const auto c = static_cast<std::size_t>(action.channel);
    switch (action.kind) {
      case Kind::wait: {
        const int other = plan_.channels[c].other_end;
        return other >= 0 && signals_[static_cast<std::size_t>(other)] > 0;
      }
      case Kind::acquire:
        return semaphores_[g][static_cast<std::size_t>(action.id)] > 0;
      case Kind::flush:
        return ports_[c].empty();
      default:
        return true;
    }
  }

  void act(std::size_t g, const Action& action) {
    const auto c = static_cast<std::size_t>(action.channel);
    switch (action.kind) {
      case Kind::signal:
        if (plan_.channels[c].type == ChannelType::port)
          ports_[c].push_back(&action);
        else
          ++signals_[c];
        break;
      case Kind::wait:
        --signals_[static_cast<std::size_t>(plan_.channels[c].other_end)];
        break;
      case Kind::acquire:
        --semaphores_[g][static_cast<std::size_t>(action.id)];
        break;
      case Kind::release:
        ++semaphores_[g][static_cast<std::size_t>(action.id)];
        break;
      case Kind::move:
        if (action.channel >= 0)
          ports_[c].push_back(&action);
        else
          move(action);
        break;
      default:
        break;
    }
  }

  void move(const Action& action) {
    std::vector<std::uint64_t> sum(action.sources.front().bytes, 0);
    for (const Span& span : action.sources) {
      for (std::size_t i = 0; i < span.bytes; ++i)
        sum[i] += memory_[static_cast<std::size_t>(span.gpu)][span.offset + i];
    }
    for (const Span& span : action.targets)
      std::ranges::copy(sum, memory_[static_cast<std::size_t>(span.gpu)].begin() +
                                 static_cast<std::ptrdiff_t>(span.offset));
  }

  /// A GPU ends with its last threadblock; its user may write all of it then.
  void note_ends() {
    for (std::size_t g = 0; g < done_.size(); ++g) {
      const bool ends =
          std::ranges::all_of(done_[g], [](const auto& tb) { return std::ranges::count(tb, false) == 0; });
      if (!ends || ended_[g]) continue;
      ended_[g] = true;
      const auto& at = plan_.memory[g];
      const auto begin = memory_[g].begin() + static_cast<std::ptrdiff_t>(at.output);
      outputs_[g].assign(begin, begin + static_cast<std::ptrdiff_t>(at.output_bytes));
      for (std::uint64_t& cell : memory_[g]) cell = random_.next();
    }
  }

  const Unfolded& plan_;
  Random& random_;
  std::vector<std::vector<std::uint64_t>> memory_;
  std::vector<std::vector<std::vector<bool>>> done_;
  std::vector<std::vector<int>> semaphores_;
  std::vector<int> signals_;
  std::vector<std::deque<const Action*>> ports_;
  std::vector<bool> ended_;
  std::vector<PlanOutputs> outputs_;
};

}  // namespace

std::optional<PlanOutputs> run_at_random(const mscclpp::Plan& plan, Random& random) {
  try {
    const Unfolded unfolded = mscclpp::unfold(plan, 1);
    return PlanRun(unfolded, random).outputs();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace rondo::test
