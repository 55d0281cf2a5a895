#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Runs the commands a user runs, measures them from outside and reads what they wrote.
namespace rondo::benchmarks {

struct CaseResult {
  nlohmann::ordered_json report;  ///< report.json of the run; null when the command failed
  double wall_s = 0;              ///< of the whole command, start of mpirun included
  double cpu_s = 0;               ///< the same, of all processes; ranks that wait for others use it up too
  int exit_code = 0;
  bool timed_out = false;
  bool verified = false;                 ///< `rondo verify` accepted the run folder
  std::uintmax_t round_files_bytes = 0;  ///< of the folder of round files; 0 where there is none

  /// Why there is nothing to compare: "timed out", "exit code 3", "not verified"; empty after a good run.
  std::string failure() const;
};

/// Runs the command without its standard output. Returns its exit code, 128 + n when signal n ended it; puts
/// the seconds that it took into `wall_s`, and those that its processes had a processor into `cpu_s`, unless
/// null.
int run_command(const std::vector<std::string>& command, double* wall_s, double* cpu_s = nullptr);

/// `mpirun -n ranks rondo solve --force --output SCRATCH arguments...`, then `rondo verify SCRATCH`. A solve
/// of more than `timeout_s` seconds is ended; 0: it may take for ever. No ranks: without mpirun. The schedule
/// is copied to `keep` unless that is empty.
CaseResult solve_case(const std::filesystem::path& rondo, int ranks,
                      const std::vector<std::string>& arguments, int timeout_s = 0,
                      const std::filesystem::path& keep = {});

/// The shipped topologies in alphabetical order, two fabrics of DGX A100 (300 GB/s to the NVSwitch, 25 GB/s
/// NICs on two spine switches) and two meshes, as --topology takes them. `source`: of the project.
std::vector<std::string> every_fabric(const std::filesystem::path& source);

/// Of at least one value.
double median(std::vector<double> values);

/// Common options of the benchmark programs, `[--ranks N] [--json FILE] [--rondo PROGRAM]`, and those of the
/// program itself.
struct BenchmarkOptions {
  std::string name;
  int ranks = 2;
  std::filesystem::path json;
  std::filesystem::path rondo;
  std::map<std::string, std::string> own;

  /// The value of own option `option`; exits with 64 if it is no number, or less than `least`.
  int number(const std::string& option, int least) const;
};

/// `own`: the options that only this program has, with their defaults. Exits with 64 on others.
BenchmarkOptions parse_options(int argc, char** argv, const std::string& name,
                               std::map<std::string, std::string> own = {});

/// Writes results with what is needed to read them later: date, processor, ranks, and the members of `more`.
void save_results(const BenchmarkOptions& options, const nlohmann::ordered_json& rows,
                  const nlohmann::ordered_json& more = nlohmann::ordered_json::object());

/// Saves results and says where they are.
void write_results(const BenchmarkOptions& options, const nlohmann::ordered_json& rows,
                   const nlohmann::ordered_json& more = nlohmann::ordered_json::object());

}  // namespace rondo::benchmarks
