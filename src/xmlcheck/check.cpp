#include "rondo/xmlcheck/check.hpp"

#include "stages.hpp"

namespace rondo::xmlcheck {

CheckResult check(const msccl::Program& program, const CheckOptions& options) {
  CheckResult result;
  Findings findings(result, options.max_findings);
  check_structure(program, findings);
  if (options.executor) check_caps(program, *options.executor, findings);
  if (findings.any()) return result;

  WaitGraph graph = build_wait_graph(program, options.fifo_depth, findings);
  if (findings.any()) return result;
  sort_steps(graph, findings);
  if (findings.any()) return result;

  for (const bool in_place : {false, true}) {
    if (in_place ? !program.in_place : !program.out_of_place) continue;
    const Memory memory(program, in_place);
    check_races(program, graph, memory, findings);
    if (findings.any()) return result;
    check_result(program, graph, memory, options, result, findings);
    if (findings.any()) return result;
  }
  return result;
}

}  // namespace rondo::xmlcheck
