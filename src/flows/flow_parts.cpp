#include "rondo/flows/flow_parts.hpp"

#include <tuple>

#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

auto members_of(SameAs<FlowField> auto& f) {
  return std::tie(f.entries, f.link_price, f.finish_us);
}
auto members_of(SameAs<SolvedFlow> auto& s) {
  return std::tie(s.status, s.field, s.objective, s.dual_bound, s.columns, s.iterations, s.largest_part_s);
}

namespace {

SolvedFlow solve_whole(const Instance& instance, const Formulation& formulation, const SolveLimits& limits,
                       const Solver& solver) {
  Instance shared = instance;
  shared.share = solver.share();
  const BuiltModel built = formulation(shared);
  const Solution solution = solver.solve(built.model, limits);
  SolvedFlow solved{solution.status};
  solved.columns = built.model.num_columns();
  solved.largest_part_s = solution.seconds;
  solved.iterations = solution.iterations;
  solved.dual_bound = solution.dual_bound;
  if (solution.status != SolveStatus::optimal) return solved;
  solved.field = built.decode(solution);
  solved.objective = solution.objective;
  return solved;
}

}  // namespace

SolvedFlow solve_flow(const Instance& instance, const Formulation& formulation, const SolveLimits& limits,
                      const Toolbox& tools) {
  return tools.solve_in_parts ? tools.solve_in_parts(instance, formulation, limits)
                              : solve_whole(instance, formulation, limits, *tools.lp);
}

std::vector<SolvedFlow> solve_each(const std::vector<Instance>& flows, const Formulation& formulation,
                                   const SolveLimits& limits, const Solver& solver,
                                   const Communicator& communicator) {
  std::vector<double> work;
  for (const Instance& flow : flows) work.push_back(static_cast<double>(flow.demand.contributions().size()));
  std::vector<SolvedFlow> solved;
  for (const PartOutcome& outcome : map_parts(communicator, work, [&](std::size_t p) {
         return to_message(solve_whole(flows[p], formulation, limits, solver));
       })) {
    if (outcome.error) throw *outcome.error;
    solved.push_back(from_message<SolvedFlow>(outcome.value));
  }
  return solved;
}

}  // namespace rondo
