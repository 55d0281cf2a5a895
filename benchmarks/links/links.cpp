// Links as they are: links that carry several transfers at once, message costs, bandwidth that changes,
// switches that copy.

#include "links.hpp"

#include "benchmarks.hpp"

namespace rondo::benchmarks::links {

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options = parse_options(argc, argv, "links", {{"--only", ""}, {"--timeout", "600"}});
  TableCases cases(options);
  TableCases::print_heading();
  fat_trees(cases);
  message_costs(cases);
  drift(cases);
  steps(cases);
  copies(cases);
  write_results(options, cases.rows());
  return cases.all_succeeded() ? 0 : 1;
}

}  // namespace rondo::benchmarks::links
