#include "rondo/local_search/joining.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "joined_parts.hpp"
#include "joining_moves.hpp"
#include "rondo/core/index.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {
namespace {

constexpr std::size_t kChainsPerRound = 8;
/// Of one chain, so that a round takes a moment.
constexpr double kWorkOfChain = 2e5;
constexpr double kMostTriesOfChain = 2000;
/// The temperature at which a chain of the first round begins, as a part of the finish time.
constexpr double kFirstTemperature = 0.02;
/// Rounds without success after which the search ends.
constexpr std::uint64_t kIdleRounds = 12;
/// The same of a plan in finer chunks, and how many times finer ones may end no earlier.
constexpr std::uint64_t kIdleRoundsOfHalves = 3;
constexpr int kLevelsInVain = 2;
/// Rounds until the worse half of the plans is left.
constexpr std::uint64_t kRoundsOfMembers = 3;
/// What the mean counts beside the finish time.
constexpr double kWorthOfMean = 0.1;
/// Plans that begin.
constexpr std::size_t kMostMembers = 16;
/// Of the work, what symmetric plans may take; and chunks over hops of plans that are then tried among all.
constexpr double kShareOfSymmetric = 0.6;
constexpr std::size_t kFewTogether = 600;
/// Chunks over hops of a plan that is made of several of a part of the size, and how many of these.
constexpr std::size_t kMostRepeated = 2000;
constexpr int kMostTimes = 64;

/// A plan on its way.
struct Member {
  int chunks = 0;  ///< a contribution
  std::size_t start = 0;
  JoinedPlan plan = {};
};

bool ends_earlier(const Member& a, const Member& b) {
  return a.plan.quality < b.plan.quality;
}

double cost(const JoinedPlan& plan) {
  return plan.quality.finish_us + kWorthOfMean * plan.quality.mean_us;
}

double tries_of_chain(const JoinedPlan& plan) {
  return std::max(1.0, std::min(kMostTriesOfChain, kWorkOfChain / static_cast<double>(plan.chunks.size())));
}

/// Simulated annealing from a placed plan on: the best that comes by.
JoinedPlan annealed(const JoinedSpace& space, const JoinedPlan& start, double temperature, Random random) {
  JoinedPlacing placing(space);
  JoiningMoves moves(space);
  JoinedPlan best = start;
  JoinedPlan now = start;
  const double tries = std::floor(tries_of_chain(start));
  for (double i = 0; i < tries; ++i) {
    JoinedPlan next = moves.neighbour_of(now, random);
    if (!placing.place(next)) continue;
    const double cooled = temperature * (1 - i / tries);
    const double worse = cost(next) - cost(now);
    if (worse > 0 && random.unit() >= std::exp(-worse / cooled)) continue;
    now = std::move(next);
    if (now.quality < best.quality) best = now;
  }
  return best;
}

/// Places a plan, and joins in one go where that helps. Nothing where it is no plan.
std::optional<JoinedPlan> begun(const JoinedSpace& space, JoinedPlan plan) {
  JoinedPlacing placing(space);
  if (!placing.place(plan)) return std::nullopt;
  const JoiningMoves moves(space);
  JoinedPlan best = plan;
  const auto try_runs = [&](const JoiningMoves::Runs& how) {
    JoinedPlan joined = moves.joined_runs(plan, how);
    if (placing.place(joined) && joined.quality < best.quality) best = std::move(joined);
  };
  for (const bool costly : {true, false}) {
    for (const bool waits : {true, false}) {
      for (const double share : {0.5, 0.25, 0.125}) try_runs({plan.chunks.size(), share, costly, waits});
      for (std::size_t most = 2; most < 2 * plan.chunks.size(); most *= 2) try_runs({most, 1, costly, waits});
    }
  }
  return best;
}

/// The search among plans up to one group.
class Joiner {
 public:
  /// `whole`: of all hops of the starts. Goes on until `work` is `until_work`.
  Joiner(const JoiningTask& task, const Communicator& communicator, const PlanSpace& whole,
         const FreeGroup& group, double until_work, double& work, Joining& found)
      : task_(task),
        communicator_(communicator),
        one_chunk_(JoinedSpace::up_to(group, with_chunks(whole, 1))),
        until_work_(until_work),
        work_(work),
        found_(found) {}

  /// The best one; nothing where none of the starts is a plan up to the group.
  std::optional<Member> run(const std::vector<Member>& starts) {
    if (!one_chunk_) return std::nullopt;
    for (const Member& start : starts) {
      if (!members_.empty() && task_.stop(finish_us())) break;
      if (auto plan = folded(start.plan, space_of(start.chunks, 1)))
        add(start.chunks, start.start, *std::move(plan));
    }
    if (members_.empty()) return std::nullopt;
    std::ranges::stable_sort(members_, ends_earlier);
    add_repeated();
    std::ranges::stable_sort(members_, ends_earlier);
    if (members_.size() > kMostMembers) members_.resize(kMostMembers);
    go_on(kIdleRounds);
    return in_finer_chunks(members_.front());
  }

  const JoinedSpace& space_of(const Member& member) { return space_of(member.chunks, 1); }

 private:
  /// Rounds until so many of one plan alone are in vain.
  void go_on(std::uint64_t idle_rounds) {
    std::uint64_t idle = 0;
    const std::uint64_t first = found_.rounds;
    while (idle < idle_rounds && work_ < until_work_ && !task_.stop(finish_us())) {
      const double before_us = finish_us();
      const bool is_alone = members_.size() == 1;
      next_round();
      if (is_alone) ++idle;
      if (finish_us() < before_us) idle = 0;
      if ((found_.rounds - first) % kRoundsOfMembers == 0) members_.resize((members_.size() + 1) / 2);
      task_.progress(found_.rounds, finish_us());
    }
  }

  /// Of the plan and what becomes of it in twice as many chunks, and so on, the best.
  Member in_finer_chunks(Member best) {
    for (int in_vain = 0; in_vain < kLevelsInVain;) {
      const Member& last = members_.front();
      const int chunks = 2 * last.chunks;
      if (chunks > task_.most_chunks || 2 * last.plan.chunks.size() > kMostRepeated) break;
      if (work_ >= until_work_ || task_.stop(best.plan.quality.finish_us)) break;
      auto halves = begun(space_of(chunks, 1), in_halves(last.plan));
      if (!halves) break;
      members_ = {{chunks, last.start, *std::move(halves)}};
      go_on(kIdleRoundsOfHalves);
      ++in_vain;
      if (finish_us() >= best.plan.quality.finish_us) continue;
      best = members_.front();
      in_vain = 0;
    }
    return best;
  }

  double finish_us() const { return members_.front().plan.quality.finish_us; }

  /// For plans of a part of the size.
  const JoinedSpace& space_of(int chunks, int part) {
    const auto known = spaces_.find({chunks, part});
    if (known != spaces_.end()) return known->second;
    const Demand demand = task_.demand.with_chunks(chunks).with_size(task_.demand.size_bytes() / part);
    return spaces_.emplace(std::pair(chunks, part), one_chunk_->with_demand(demand)).first->second;
  }

  void add(int chunks, std::size_t start, JoinedPlan plan) {
    if (auto placed = begun(space_of(chunks, 1), std::move(plan)))
      members_.push_back({chunks, start, *std::move(placed)});
  }

  /// Chains that begin at these plans, each in its space, and what they come to on every rank.
  std::vector<JoinedPlan> annealed_all(
      const std::vector<std::pair<const JoinedSpace*, const JoinedPlan*>>& chains) {
    const std::uint64_t round = found_.rounds++;
    std::vector<double> work;
    for (const auto& [space, plan] : chains) {
      const double tries = tries_of_chain(*plan);
      work.push_back(tries * static_cast<double>(plan->chunks.size()));
      work_ += work.back();
      found_.tries += static_cast<std::uint64_t>(tries);
    }
    const auto outcomes = map_parts(communicator_, work, [&](std::size_t chain) {
      const auto [space, start] = chains[chain];
      const double temperature =
          kFirstTemperature * start->quality.finish_us / static_cast<double>(1 + round % 8);
      const Random random(mix_bits(mix_bits(mix_bits(task_.seed + 1) + round) + chain));
      return to_message(annealed(*space, *start, temperature, random));
    });
    std::vector<JoinedPlan> plans;
    for (const PartOutcome& outcome : outcomes) {
      if (outcome.error) throw *outcome.error;
      plans.push_back(from_message<JoinedPlan>(outcome.value));
    }
    return plans;
  }

  /// Each member becomes the best of what its chains come to.
  void next_round() {
    std::vector<std::pair<const JoinedSpace*, const JoinedPlan*>> chains;
    const std::size_t members = members_.size();
    for (std::size_t c = 0; c < std::max(members, kChainsPerRound); ++c) {
      const Member& member = members_[c % members];
      chains.emplace_back(&space_of(member), &member.plan);
    }
    std::vector<JoinedPlan> plans = annealed_all(chains);
    for (std::size_t c = 0; c < plans.size(); ++c) {
      JoinedPlan& best = members_[c % members].plan;
      if (plans[c].quality < best.quality) best = std::move(plans[c]);
    }
    std::ranges::stable_sort(members_, ends_earlier);
  }

  /// Plans of a part of the size, the best ones of one chunk a contribution, one after another.
  void add_repeated() {
    struct Part {
      int times;
      std::size_t start;
      JoinedPlan plan;
    };
    std::vector<Part> parts;
    for (int times = 2; times <= std::min(kMostTimes, task_.most_chunks); times *= 2) {
      std::vector<Part> best;
      for (const Member& member : members_) {
        JoinedPlan plan = of_first_chunks(member.plan, static_cast<std::size_t>(member.chunks));
        if (plan.chunks.size() * static_cast<std::size_t>(times) > kMostRepeated) continue;
        if (JoinedPlacing(space_of(1, times)).place(plan)) best.push_back({times, member.start, plan});
      }
      std::ranges::stable_sort(best, {}, [](const Part& part) { return part.plan.quality; });
      if (best.size() > kPartsOfSize) best.resize(kPartsOfSize);
      std::ranges::move(best, std::back_inserter(parts));
    }
    for (int round = 0; round < kRoundsOfParts && !parts.empty(); ++round) {
      if (task_.stop(finish_us())) return;
      std::vector<std::pair<const JoinedSpace*, const JoinedPlan*>> chains;
      for (const Part& part : parts) chains.emplace_back(&space_of(1, part.times), &part.plan);
      std::vector<JoinedPlan> plans = annealed_all(chains);
      for (std::size_t p = 0; p < plans.size(); ++p) parts[p].plan = std::move(plans[p]);
    }
    for (const Part& part : parts) {
      add(part.times, part.start,
          repeated(part.plan, static_cast<std::size_t>(part.times), space_of(1, part.times)));
    }
  }
  static constexpr std::size_t kPartsOfSize = 4;
  static constexpr int kRoundsOfParts = 4;

  const JoiningTask& task_;
  const Communicator& communicator_;
  const std::optional<JoinedSpace> one_chunk_;  ///< none where the group does not keep the demand
  const double until_work_;
  double& work_;  ///< of all searches
  Joining& found_;
  std::map<std::pair<int, int>, JoinedSpace> spaces_ = {};  ///< by chunks and part
  std::vector<Member> members_ = {};
};

}  // namespace

Joining join_transfers(const JoiningTask& task, const Communicator& communicator) {
  Joining found;
  PlanSpace whole = make_plan_space(task.topology, task.demand, task.concurrency);
  std::vector<Member> starts;
  double finish_us = kInfinity;
  for (std::size_t s = 0; s < task.starts.size(); ++s) {
    const auto& [chunks, schedule] = task.starts[s];
    finish_us = std::min(finish_us, schedule.finish_us);
    whole.demand = task.demand.with_chunks(chunks);
    if (auto plan = joined_plan_of(schedule, whole)) starts.push_back({chunks, s, *std::move(plan)});
  }
  double work = 0;
  const auto search = [&](const FreeGroup& group, double until_work) {
    Joiner joiner(task, communicator, whole, group, until_work, work, found);
    std::optional<Member> best = joiner.run(starts);
    if (!best) return false;
    if (best->plan.quality.finish_us >= finish_us) return true;
    finish_us = best->plan.quality.finish_us;
    found.schedule = schedule_of(best->plan, joiner.space_of(*best));
    found.chunks = best->chunks;
    found.start = best->start;
    return true;
  };
  if (starts.empty()) return found;
  if (task.group.order() > 1 && search(task.group, kShareOfSymmetric * task.work_limit)) {
    // Then among all plans, unless a chain tries next to nothing of them.
    if (found.schedule) {
      whole.demand = task.demand.with_chunks(found.chunks);
      if (auto plan = joined_plan_of(*found.schedule, whole))
        starts.insert(starts.begin(), {found.chunks, found.start, *std::move(plan)});
    }
    std::erase_if(starts, [](const Member& start) { return start.plan.chunks.size() > kFewTogether; });
    if (starts.empty() || task.stop(finish_us)) return found;
  }
  search(FreeGroup::trivial(task.topology), task.work_limit);
  return found;
}

}  // namespace rondo
