#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "case_runner.hpp"

namespace rondo::benchmarks {

/// Runs the cases of a benchmark of several tables, prints a line for each and gathers their rows.
class TableCases {
 public:
  /// `options` has "--only" and "--timeout".
  explicit TableCases(const BenchmarkOptions& options);

  static void print_heading();
  /// Whether the case is asked for by --only.
  bool wants(const std::string& table, const std::string& name) const;
  /// Solves with these arguments besides the fixed ones of solve_case(), verifies and prints. Nothing where
  /// that failed, which is told and counted. The schedule is copied to `keep` unless that is empty.
  std::optional<CaseResult> solve(const std::string& table, const std::string& name,
                                  const std::vector<std::string>& arguments,
                                  const std::filesystem::path& keep = {});
  /// Where the case is asked for: solves it and adds its row, with "arguments" and the members of `more`.
  void solve_row(const std::string& table, const std::string& name, const std::string& arguments,
                 const nlohmann::ordered_json& more = nlohmann::ordered_json::object());
  /// A row of a table, with what tells it from others in "case".
  void add(const std::string& table, const std::string& name, const nlohmann::ordered_json& row);
  void fail(const std::string& table, const std::string& name, const std::string& why);

  const BenchmarkOptions& options() const { return options_; }
  int timeout_s() const { return timeout_s_; }
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

/// "a b  c" as the words of a command.
std::vector<std::string> words(const std::string& text);

}  // namespace rondo::benchmarks
