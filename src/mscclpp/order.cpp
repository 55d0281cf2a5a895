#include "order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "rondo/core/error.hpp"

namespace rondo::mscclpp {
namespace {

using Kind = Action::Kind;
constexpr std::size_t kMostClocks = std::size_t{1} << 30;

}  // namespace

/// Makes the events of one threadblock after another, then what joins them.
class Order::Builder {
 public:
  Builder(Order& order, const Unfolded& plan, std::vector<Finding>& findings)
      : order_(order), plan_(plan), findings_(findings), channels_(plan.channels.size()) {}

  void run() {
    for (std::size_t g = 0; g < plan_.tbs.size(); ++g) {
      semaphores_.assign(plan_.semaphores[g].size(), {});
      barriers_.clear();
      order_.tb_chains_.emplace_back();
      std::vector<int> ends;
      for (std::size_t t = 0; t < plan_.tbs[g].size(); ++t)
        ends.push_back(add_tb(static_cast<int>(g), static_cast<int>(t)));
      join_semaphores(static_cast<int>(g));
      join_barriers();
      order_.ends_.push_back(append({.gpu = static_cast<int>(g), .before = ends}));
    }
    join_channels();
  }

 private:
  struct Use {
    int event = -1;
    int tb = -1;
    bool relaxed = false;
  };
  struct Channel {
    std::vector<Use> signals = {};  ///< when they arrive
    std::vector<Use> waits = {};
    int last = -1;  ///< what the port did last
    int chain = -1;
    int done = 0;
  };
  struct Semaphore {
    std::vector<Use> releases = {}, acquires = {};
  };
  struct Meeting {
    std::vector<int> arrivals = {}, departures = {};
    int num_tbs = 0;
  };

  int append(Event event, int mark = -1) {
    order_.events_.push_back(std::move(event));
    order_.marks_.push_back(mark);
    return static_cast<int>(order_.events_.size()) - 1;
  }

  void find(int event, std::string what) { findings_.push_back({order_.where(event), std::move(what)}); }

  int add_tb(int g, int t) {
    gpu_ = g;
    tb_ = t;
    chain_ = order_.num_chains_++;
    order_.tb_chains_.back().push_back(chain_);
    syncs_ = 0;
    open_.clear();
    last_of_thread_.clear();
    sync_ = append({.gpu = g, .tb = t}, chain_);
    std::map<int, int> meetings;
    for (const Action& action : plan_.tbs[static_cast<std::size_t>(g)][static_cast<std::size_t>(t)]) {
      op_ = action.op;
      switch (action.kind) {
        case Kind::sync:
          sync();
          break;
        case Kind::barrier: {
          sync();
          Meeting& meeting = barriers_[{action.id, meetings[action.id]++}];
          if (meeting.arrivals.empty()) meeting.num_tbs = action.num_tbs;
          meeting.arrivals.push_back(sync_);
          if (meeting.num_tbs != action.num_tbs)
            find(sync_, fmt::format("barrier {} of {} threadblocks, elsewhere of {}", action.id,
                                    action.num_tbs, meeting.num_tbs));
          sync();
          meeting.departures.push_back(sync_);
          break;
        }
        case Kind::move:
          if (action.thread != Action::kAllThreads) {
            send(action);
            break;
          }
          open_.push_back(append({.gpu = g,
                                  .tb = t,
                                  .op = op_,
                                  .move = &action,
                                  .chain = chain_,
                                  .position = syncs_ + 2,
                                  .before = {sync_}}));
          break;
        default:
          add_narrow(action);
      }
    }
    sync();
    return sync_;
  }

  /// All that is under way in the threadblock ends.
  void sync() {
    open_.push_back(sync_);
    sync_ = append({.gpu = gpu_, .tb = tb_, .op = op_, .before = open_}, chain_);
    ++syncs_;
    open_.clear();
    last_of_thread_.clear();
  }

  /// What one thread does: after what it did before.
  int by_thread(int thread) {
    const auto [last, is_first] = last_of_thread_.try_emplace(thread, sync_);
    const int event = append({.gpu = gpu_, .tb = tb_, .op = op_, .before = {last->second}});
    last->second = event;
    open_.push_back(event);
    return event;
  }

  Channel& channel(int c) { return channels_[static_cast<std::size_t>(c)]; }
  bool is_port(int c) const { return plan_.channels[static_cast<std::size_t>(c)].type == ChannelType::port; }

  /// What a port does comes after what it was told before, without the threads.
  int by_port(int c, int told, const Action* move) {
    Channel& port = channel(c);
    if (port.chain < 0) port.chain = order_.num_chains_++;
    Event event{.gpu = gpu_,
                .tb = tb_,
                .op = op_,
                .move = move,
                .chain = port.chain,
                .position = ++port.done,
                .before = {told}};
    if (port.last >= 0) event.before.push_back(port.last);
    port.last = append(std::move(event), port.chain);
    return port.last;
  }

  void send(const Action& action) { by_port(action.channel, by_thread(action.thread), &action); }

  void add_narrow(const Action& action) {
    const int event = by_thread(action.thread);
    const Use use{.event = event, .tb = tb_, .relaxed = action.relaxed};
    switch (action.kind) {
      case Kind::signal: {
        order_.has_relaxed_ = order_.has_relaxed_ || action.relaxed;
        const int arrives = is_port(action.channel) ? by_port(action.channel, event, nullptr) : event;
        channel(action.channel).signals.push_back({arrives, tb_, action.relaxed});
        break;
      }
      case Kind::wait:
        channel(action.channel).waits.push_back(use);
        break;
      case Kind::flush:
        if (channel(action.channel).last >= 0) order_.follow(event, channel(action.channel).last);
        break;
      case Kind::release:
        semaphores_[static_cast<std::size_t>(action.id)].releases.push_back(use);
        break;
      default:
        semaphores_[static_cast<std::size_t>(action.id)].acquires.push_back(use);
    }
  }

  static bool one_tb(const std::vector<Use>& uses) {
    return std::ranges::all_of(uses, [&](const Use& use) { return use.tb == uses.front().tb; });
  }

  void join_channels() {
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const ChannelEnd& end = plan_.channels[c];
      const Channel& mine = channels_[c];
      const auto name = [&] {
        return fmt::format("a {} channel from gpu {} to gpu {}", to_string(end.type), end.gpu, end.peer);
      };
      if (!mine.signals.empty() && !one_tb(mine.signals))
        find(mine.signals.back().event,
             name() + " is signalled by several threadblocks: which wait each meets is open");
      if (!mine.waits.empty() && !one_tb(mine.waits))
        find(mine.waits.back().event,
             name() + " is waited on by several threadblocks: which signal each meets is open");
      const Channel none;
      const Channel& other = end.other_end < 0 ? none : channels_[static_cast<std::size_t>(end.other_end)];
      if (mine.signals.size() > other.waits.size())
        find(mine.signals[other.waits.size()].event,
             fmt::format("{} is signalled {} times, but waited on {}", name(), mine.signals.size(),
                         other.waits.size()));
      if (mine.waits.size() > other.signals.size())
        find(mine.waits[other.signals.size()].event,
             fmt::format("{} is waited on {} times, but signalled {}", name(), mine.waits.size(),
                         other.signals.size()));
      for (std::size_t k = 0; k < std::min(mine.waits.size(), other.signals.size()); ++k) {
        Event& wait = order_.event_at(mine.waits[k].event);
        const bool relaxed = mine.waits[k].relaxed || other.signals[k].relaxed;
        (relaxed ? wait.before_relaxed : wait.before).push_back(other.signals[k].event);
      }
    }
  }

  /// With `first` at the beginning, an acquire that is its threadblock's n-th comes after n - first releases.
  void join_semaphores(int g) {
    for (std::size_t s = 0; s < semaphores_.size(); ++s) {
      const auto& [releases, acquires] = semaphores_[s];
      const int first = plan_.semaphores[static_cast<std::size_t>(g)][s];
      if (releases.size() != acquires.size()) {
        const auto& more = releases.size() > acquires.size() ? releases : acquires;
        find(more.back().event, fmt::format("semaphore {} is released {} times, but acquired {}", s,
                                            releases.size(), acquires.size()));
        continue;
      }
      std::map<int, int> taken;
      for (const Use& acquire : acquires) {
        const int needed = ++taken[acquire.tb] - first;
        if (needed <= 0) continue;
        auto& before = order_.event_at(acquire.event).before;
        if (one_tb(releases)) {
          before.push_back(releases[static_cast<std::size_t>(needed) - 1].event);
        } else if (needed == std::ssize(releases)) {
          for (const Use& release : releases) before.push_back(release.event);
        }
      }
    }
  }

  void join_barriers() {
    for (const auto& [id, meeting] : barriers_) {
      if (std::ssize(meeting.arrivals) != meeting.num_tbs)
        find(meeting.arrivals.back(), fmt::format("barrier {} is for {} threadblocks, {} come", id.first,
                                                  meeting.num_tbs, meeting.arrivals.size()));
      for (const int departure : meeting.departures) {
        auto& before = order_.event_at(departure).before;
        before.insert(before.end(), meeting.arrivals.begin(), meeting.arrivals.end());
      }
    }
  }

  Order& order_;
  const Unfolded& plan_;
  std::vector<Finding>& findings_;
  std::vector<Channel> channels_;
  std::vector<Semaphore> semaphores_;                ///< of the GPU
  std::map<std::pair<int, int>, Meeting> barriers_;  ///< of the GPU, by id and how often it was met
  int gpu_ = 0, tb_ = 0, op_ = -1, chain_ = 0;
  int sync_ = -1, syncs_ = 0;
  std::vector<int> open_;  ///< events of the threadblock since the last sync
  std::map<int, int> last_of_thread_;
};

Order::Order(const Unfolded& plan, std::vector<Finding>& findings) {
  Builder(*this, plan, findings).run();
}

std::string Order::where(int event) const {
  const Event& at = events_[static_cast<std::size_t>(event)];
  return place(at.gpu, at.tb, at.op);
}

bool Order::sort(std::vector<Finding>& findings) {
  std::vector<std::vector<int>> after(events_.size());
  std::vector<int> left(events_.size(), 0);
  for (std::size_t e = 0; e < events_.size(); ++e) {
    for (const auto* before : {&events_[e].before, &events_[e].before_relaxed}) {
      left[e] += static_cast<int>(before->size());
      for (const int earlier : *before)
        after[static_cast<std::size_t>(earlier)].push_back(static_cast<int>(e));
    }
  }
  std::deque<int> ready;
  for (std::size_t e = 0; e < events_.size(); ++e) {
    if (left[e] == 0) ready.push_back(static_cast<int>(e));
  }
  while (!ready.empty()) {
    const int event = ready.front();
    ready.pop_front();
    sorted_.push_back(event);
    for (const int next : after[static_cast<std::size_t>(event)]) {
      if (--left[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
    }
  }
  if (sorted_.size() < events_.size()) {
    // Each that is left waits for one that is left: going back meets a cycle.
    int event = static_cast<int>(std::ranges::find_if(left, [](int n) { return n > 0; }) - left.begin());
    std::vector<char> seen(events_.size(), 0);
    while (seen[static_cast<std::size_t>(event)]++ == 0) {
      const Event& at = events_[static_cast<std::size_t>(event)];
      for (const auto* before : {&at.before, &at.before_relaxed}) {
        const auto it =
            std::ranges::find_if(*before, [&](int b) { return left[static_cast<std::size_t>(b)] > 0; });
        if (it != before->end()) {
          event = *it;
          break;
        }
      }
    }
    findings.push_back({where(event), "waits for itself: a deadlock"});
    return false;
  }
  if (events_.size() * static_cast<std::size_t>(num_chains_) > kMostClocks) {
    throw Error(ExitCode::unavailable,
                fmt::format("the plan has {} events of {} threadblocks and ports; that is too much to check",
                            events_.size(), num_chains_));
  }
  count(true, clocks_);
  if (has_relaxed_) count(false, visible_clocks_);
  return true;
}

void Order::count(bool relaxed, std::vector<std::uint16_t>& clocks) {
  const auto chains = static_cast<std::size_t>(num_chains_);
  clocks.assign(events_.size() * chains, 0);
  for (const int event : sorted_) {
    std::uint16_t* clock = &clocks[static_cast<std::size_t>(event) * chains];
    const Event& at = events_[static_cast<std::size_t>(event)];
    const auto take = [&](const std::vector<int>& before) {
      for (const int earlier : before) {
        const std::uint16_t* other = &clocks[static_cast<std::size_t>(earlier) * chains];
        for (std::size_t c = 0; c < chains; ++c) clock[c] = std::max(clock[c], other[c]);
      }
    };
    take(at.before);
    if (relaxed) take(at.before_relaxed);
    const int mark = marks_[static_cast<std::size_t>(event)];
    if (mark < 0) continue;
    std::uint16_t& own = clock[static_cast<std::size_t>(mark)];
    if (own == std::numeric_limits<std::uint16_t>::max())
      throw Error(ExitCode::unavailable, where(event) + ": more than 65535 steps of a threadblock at once");
    ++own;
  }
}

bool Order::is_over(int move, int later, bool visibly) const {
  const Event& at = events_[static_cast<std::size_t>(move)];
  const auto& clocks = visibly && has_relaxed_ ? visible_clocks_ : clocks_;
  return clocks[static_cast<std::size_t>(later) * static_cast<std::size_t>(num_chains_) +
                static_cast<std::size_t>(at.chain)] >= at.position;
}

bool Order::has_begun(int gpu, int event) const {
  const std::size_t clock = static_cast<std::size_t>(event) * static_cast<std::size_t>(num_chains_);
  return std::ranges::any_of(tb_chains_[static_cast<std::size_t>(gpu)],
                             [&](int chain) { return clocks_[clock + static_cast<std::size_t>(chain)] > 0; });
}

}  // namespace rondo::mscclpp
