#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/engines/synchronous.hpp"

namespace rondo {
namespace {

/// Conflicts of the first attempts, and by how much later ones have more.
constexpr std::int64_t kFirstConflicts = 1000;
constexpr std::int64_t kMoreConflicts = 8;

/// The same sends in more steps: a step of r > 1 rounds becomes one of 1 round, in which every link carries
/// what it may, and one of r - 1 rounds, until there are as many as the instance has.
StepPlan taken_apart(StepPlan plan, const StepInstance& instance) {
  std::vector<int> per_round(instance.arcs.size(), 0);
  for (const StepBound& bound : instance.bounds) {
    for (const int arc : bound.arcs) per_round[index(arc)] = bound.chunks;
  }
  // A plan may do with fewer rounds.
  plan.rounds.back() += instance.rounds - std::accumulate(plan.rounds.begin(), plan.rounds.end(), 0);
  StepPlan apart;
  int missing = instance.steps - static_cast<int>(plan.rounds.size());
  std::vector<int> first;  // per step of the plan its first one of the new plan
  for (const int rounds : plan.rounds) {
    first.push_back(static_cast<int>(apart.rounds.size()));
    const int more = std::min(missing, rounds - 1);
    apart.rounds.insert(apart.rounds.end(), index(more), 1);
    apart.rounds.push_back(rounds - more);
    missing -= more;
  }
  std::map<std::pair<int, int>, int> sent;  // by (step, arc), so far
  for (const StepSend& send : plan.sends) {
    const int turn = sent[{send.step, send.arc}]++ / per_round[index(send.arc)];
    const int last = send.step + 1 < std::ssize(first) ? first[index(send.step + 1)] - 1
                                                       : static_cast<int>(apart.rounds.size()) - 1;
    apart.sends.push_back({send.chunk, send.arc, std::min(first[index(send.step)] + turn, last)});
  }
  std::ranges::stable_sort(apart.sends, {}, &StepSend::step);
  return apart;
}

void write_formula(const Cnf& cnf, const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary);
  file << to_dimacs(cnf);
  if (!file.flush()) throw Error(ExitCode::cannot_create, "cannot write " + path.string());
}

/// Attempts with fewer and with all steps, each with more and more conflicts.
class StepSearch {
 public:
  StepSearch(const StepInstance& instance, const SatSolver& solver, const SatLimits& limits,
             const std::filesystem::path& proof)
      : instance_(instance), solver_(solver), limits_(limits), proof_(proof) {}

  StepAnswer run() {
    std::vector<Attempt> open;  // whose answer is not known
    for (int steps = std::max(1, least_steps(instance_)); steps < instance_.steps; ++steps)
      add_attempts(steps, open);
    add_attempts(instance_.steps, open);
    for (std::int64_t conflicts = kFirstConflicts;; conflicts *= kMoreConflicts) {
      const std::vector<Attempt> now = std::exchange(open, {});
      for (const Attempt& attempt : now) {
        const SatStatus status = try_one(attempt, now.size() == 1 ? -1 : conflicts);
        if (answer_.status != SatStatus::unknown || is_over()) return std::move(answer_);
        if (status == SatStatus::unknown) open.push_back(attempt);
      }
    }
  }

 private:
  bool is_over() const {
    return limits_.deadline.is_over() ||
           (limits_.max_conflicts >= 0 && answer_.conflicts >= limits_.max_conflicts);
  }

  struct Attempt {
    int steps;
    bool turned;
  };

  void add_attempts(int steps, std::vector<Attempt>& attempts) const {
    if (turn_) attempts.push_back({steps, true});
    attempts.push_back({steps, false});
  }

  SatStatus try_one(const Attempt& attempt, std::int64_t conflicts) {
    StepInstance instance = instance_;
    instance.steps = attempt.steps;
    const bool is_asked = attempt.steps == instance_.steps && !attempt.turned;
    const StepFormula formula = encode_steps(instance, attempt.turned ? &*turn_ : nullptr);
    SatLimits limits = limits_;
    if (conflicts >= 0) limits.max_conflicts = conflicts;
    if (limits_.max_conflicts >= 0) {
      const std::int64_t left = limits_.max_conflicts - answer_.conflicts;
      limits.max_conflicts = conflicts >= 0 ? std::min(conflicts, left) : left;
    }
    const SatAnswer found = solver_.solve(formula.cnf, limits, is_asked ? proof_ : "");
    answer_.conflicts += found.conflicts;
    answer_.variables = formula.cnf.num_variables();
    answer_.clauses = formula.cnf.num_clauses();
    if (found.status == SatStatus::satisfiable) {
      answer_.plan = taken_apart(formula.decode(found.value), instance_);
      answer_.status = found.status;
    } else if (found.status == SatStatus::unsatisfiable && is_asked) {
      answer_.status = found.status;
      if (!proof_.empty()) write_formula(formula.cnf, proof_.string() + ".cnf");
    }
    return found.status;
  }

  const StepInstance& instance_;
  const SatSolver& solver_;
  const SatLimits& limits_;
  const std::filesystem::path& proof_;
  std::optional<StepTurn> turn_ = find_turn(instance_);
  StepAnswer answer_;
};

}  // namespace

StepAnswer find_steps(const StepInstance& instance, const SatSolver& solver, const SatLimits& limits,
                      const std::filesystem::path& proof) {
  StepAnswer answer = StepSearch(instance, solver, limits, proof).run();
  if (!proof.empty() && answer.status != SatStatus::unsatisfiable) std::filesystem::remove(proof);
  return answer;
}

}  // namespace rondo
