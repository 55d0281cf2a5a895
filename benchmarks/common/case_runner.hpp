#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Runs the commands a user runs, measures them from outside and reads what they wrote.
namespace rondo::benchmarks {

struct CaseResult {
  nlohmann::ordered_json report;  ///< report.json of the run; null when the command failed
  double wall_s = 0;              ///< of the whole command, start of mpirun included
  int exit_code = 0;
  bool verified = false;  ///< `rondo verify` accepted the run folder
};

/// `mpirun -n ranks rondo solve --force --output SCRATCH arguments...`, then `rondo verify SCRATCH`.
CaseResult solve_case(const std::filesystem::path& rondo, int ranks,
                      const std::vector<std::string>& arguments);

/// Common options of the benchmark programs: `[--ranks N] [--json FILE] [--rondo PROGRAM]`. Exits with 64 on
/// others.
struct BenchmarkOptions {
  int ranks = 2;
  std::filesystem::path json;
  std::filesystem::path rondo;
};
BenchmarkOptions parse_options(int argc, char** argv, const std::string& name);

/// Writes results with what is needed to read them later: date, processor, ranks, the program's version.
void write_results(const BenchmarkOptions& options, const nlohmann::ordered_json& rows);

}  // namespace rondo::benchmarks
