#include <fmt/format.h>

#include <tuple>

#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/messages.hpp"
#include "rondo/pipeline/lp_solvers.hpp"
#include "rondo/solvers/pdhg.hpp"

namespace rondo {

auto members_of(SameAs<PdhgIterate> auto& i) {
  return std::tie(i.x, i.row_dual, i.primal_weight, i.iterations);
}

namespace {

/// Seconds between two lines about a run.
constexpr double kProgressEvery = 1;

/// One run solves several models; each has states of its own.
PdhgStore pdhg_store(const Communicator& communicator, Checkpoints& checkpoints) {
  const auto name = [](std::uint64_t model) { return fmt::format("pdhg-{:016x}", model); };
  PdhgStore store;
  store.newest = [=, &communicator, &checkpoints](std::uint64_t model) -> std::optional<PdhgIterate> {
    const std::optional<Bytes> found = checkpoints.newest(communicator, name(model));
    if (!found) return std::nullopt;
    return from_message<PdhgIterate>(*found);
  };
  store.offer = [=, &communicator, &checkpoints](std::uint64_t model,
                                                 const std::function<PdhgIterate()>& iterate, bool last) {
    const auto state = [&] { return to_message(iterate()); };
    if (last) {
      checkpoints.keep(communicator, name(model), state);
    } else {
      checkpoints.offer(communicator, name(model), state);
    }
  };
  return store;
}

std::shared_ptr<const Solver> make_pdhg_with_states(const SolveOptions& options, const RunContext& context) {
  PdhgOptions pdhg;
  pdhg.tolerance = options.lp_tolerance;
  pdhg.interrupt = context.interrupt;
  pdhg.store = pdhg_store(context.communicator, context.checkpoints());
  pdhg.progress = [&context, since = Stopwatch()](const PdhgProgress& p) mutable {
    if (since.seconds() < kProgressEvery) return;
    since = {};
    context.tell(fmt::format("pdhg: {} iterations, gap {:.2g}, residuals {:.2g} and {:.2g}", p.iterations,
                             p.gap, p.primal_residual, p.dual_residual));
  };
  return make_pdhg_solver(context.communicator, std::move(pdhg));
}

}  // namespace

LpSolverInfo pdhg_lp_solver() {
  return {.name = "pdhg",
          .help = "first-order method (PDLP) on matrices distributed over all ranks, to --lp-tolerance",
          .on_all_ranks = true,
          .solves_parts = false,
          .make = make_pdhg_with_states};
}

}  // namespace rondo
