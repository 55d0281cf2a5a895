#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "case_runner.hpp"

/// Benchmark demands: data that several want. Each table stands in a file of its own.
namespace rondo::benchmarks {

/// Runs the cases of all tables, prints a line for each and gathers their rows.
class DemandCases {
 public:
  /// `options` has "--only" and "--timeout".
  explicit DemandCases(const BenchmarkOptions& options);

  /// Whether the case is asked for by --only.
  bool wants(const std::string& table, const std::string& name) const;
  /// Where the case is asked for: solves with these arguments besides the fixed ones of solve_case(),
  /// verifies, prints, and adds a row with "table", "case", "arguments", "wall_s", "report" and the members
  /// of `more`. Failures are told and counted. Arguments hold no blanks.
  void solve(const std::string& table, const std::string& name, const std::string& arguments,
             const nlohmann::ordered_json& more = nlohmann::ordered_json::object());

  bool all_succeeded() const { return all_succeeded_; }
  /// In the order of their making. With --only, rows of other cases in the file of results stay, in front.
  nlohmann::ordered_json rows() const;

 private:
  const BenchmarkOptions& options_;
  int timeout_s_;
  bool all_succeeded_ = true;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  std::set<std::string> asked_for_;
};

/// One root and all other GPUs, either way: tables broadcast and reduce.
void rooted(DemandCases& cases);
/// Table mixed: pairs and multicasts of other sizes and times, drawn at random.
void mixed(DemandCases& cases);
/// Table named: collectives by name and as custom demands.
void named(DemandCases& cases);

}  // namespace rondo::benchmarks
