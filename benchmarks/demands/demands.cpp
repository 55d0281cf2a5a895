// Data that several want: Broadcast and its reverse, mixes of pairs and multicasts.

#include "demands.hpp"

#include "benchmarks.hpp"

namespace rondo::benchmarks::demands {

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options =
      parse_options(argc, argv, "demands", {{"--only", ""}, {"--timeout", "600"}});
  TableCases cases(options);
  TableCases::print_heading();
  rooted(cases);
  mixed(cases);
  named(cases);
  write_results(options, cases.rows());
  return cases.all_succeeded() ? 0 : 1;
}

}  // namespace rondo::benchmarks::demands
