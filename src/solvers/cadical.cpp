#include <algorithm>
#include <cadical.hpp>
#include <limits>

#include "rondo/core/error.hpp"
#include "rondo/solvers/solvers.hpp"

namespace rondo {
namespace {

/// CaDiCaL asks it now and then whether to go on.
class CadicalTerminator final : public CaDiCaL::Terminator {
 public:
  explicit CadicalTerminator(const Deadline& deadline) : deadline_(deadline) {}
  bool terminate() override { return deadline_.is_over(); }

 private:
  const Deadline& deadline_;
};

/// CaDiCaL tells it every clause that it learns, which is one a conflict.
class ConflictCounter final : public CaDiCaL::Learner {
 public:
  bool learning(int) override {
    ++conflicts_;
    return false;
  }
  void learn(int) override {}
  std::int64_t conflicts() const { return conflicts_; }

 private:
  std::int64_t conflicts_ = 0;
};

/// Of CaDiCaL::Solver::solve().
enum CadicalAnswer { kSatisfiable = 10, kUnsatisfiable = 20 };

class CadicalBackend final : public SatSolver {
 public:
  std::string name() const override { return "cadical"; }

  SatAnswer solve(const Cnf& cnf, const SatLimits& limits,
                  const std::filesystem::path& proof) const override {
    CadicalTerminator terminator(limits.deadline);
    ConflictCounter counter;
    CaDiCaL::Solver solver;
    solver.set("quiet", 1);
    if (!proof.empty()) {
      solver.set("binary", 0);
      if (!solver.trace_proof(proof.c_str())) throw Error(ExitCode::io, "cannot write " + proof.string());
    }
    solver.connect_terminator(&terminator);
    solver.connect_learner(&counter);
    for (const int literal : cnf.literals()) solver.add(literal);
    if (limits.max_conflicts >= 0) {
      constexpr std::int64_t kMost = std::numeric_limits<int>::max();
      solver.limit("conflicts", static_cast<int>(std::min(limits.max_conflicts, kMost)));
    }
    const int answer = solver.solve();
    SatAnswer result{.conflicts = counter.conflicts()};
    if (answer == kSatisfiable) {
      result.status = SatStatus::satisfiable;
      result.value.resize(static_cast<std::size_t>(cnf.num_variables()) + 1);
      for (int v = 1; v <= cnf.num_variables(); ++v) {
        result.value[static_cast<std::size_t>(v)] = solver.val(v) > 0 ? 1 : 0;
      }
    } else if (answer == kUnsatisfiable) {
      result.status = SatStatus::unsatisfiable;
    }
    if (!proof.empty()) {
      solver.flush_proof_trace();
      solver.close_proof_trace();
    }
    solver.disconnect_learner();
    solver.disconnect_terminator();
    return result;
  }
};

}  // namespace

std::shared_ptr<const SatSolver> make_cadical_solver() {
  return std::make_shared<CadicalBackend>();
}

}  // namespace rondo
