// Links as they are: links that carry several transfers at once, message costs, bandwidth that changes.

#include "links.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace rondo::benchmarks {

using Json = nlohmann::ordered_json;

LinkCases::LinkCases(const BenchmarkOptions& options)
    : options_(options), timeout_s_(options.number("--timeout", 1)) {}

bool LinkCases::wants(const std::string& table, const std::string& name) const {
  return (table + ": " + name).find(options_.own.at("--only")) != std::string::npos;
}

std::optional<CaseResult> LinkCases::solve(const std::string& table, const std::string& name,
                                           const std::vector<std::string>& arguments,
                                           const std::filesystem::path& keep) {
  CaseResult result = solve_case(options_.rondo, options_.ranks, arguments, timeout_s_, keep);
  if (const std::string failure = result.failure(); !failure.empty()) {
    fail(table, name, failure);
    return std::nullopt;
  }
  const Json& report = result.report;
  std::printf("%-10s %-72s %14.3f %14.3f %9.4f %7d %8.2f  %s\n", table.c_str(), name.c_str(),
              report["finish_us"].get<double>(), report["lower_bound_us"].get<double>(),
              100 * report["gap"].get<double>(), report["chunks"].get<int>(), result.wall_s,
              report["engine"].get<std::string>().c_str());
  std::fflush(stdout);
  return result;
}

void LinkCases::solve_row(const std::string& table, const std::string& name, const std::string& arguments,
                          const Json& more) {
  if (!wants(table, name)) return;
  const std::optional<CaseResult> result = solve(table, name, words(arguments));
  if (!result) return;
  Json row{{"arguments", arguments}, {"wall_s", result->wall_s}, {"report", result->report}};
  row.update(more);
  add(table, name, row);
}

void LinkCases::add(const std::string& table, const std::string& name, const Json& row) {
  Json whole{{"table", table}, {"case", name}};
  whole.update(row);
  rows_.push_back(std::move(whole));
  asked_for_.insert(table + ": " + name);
}

void LinkCases::fail(const std::string& table, const std::string& name, const std::string& why) {
  std::printf("%-10s %-72s failed: %s\n", table.c_str(), name.c_str(), why.c_str());
  std::fflush(stdout);
  all_succeeded_ = false;
  asked_for_.insert(table + ": " + name);
}

Json LinkCases::rows() const {
  Json all = Json::array();
  std::ifstream file(options_.json);
  if (!options_.own.at("--only").empty() && file) {
    const Json earlier = Json::parse(file);
    for (const Json& row : earlier.at("rows")) {
      const std::string name = row.at("table").get<std::string>() + ": " + row.at("case").get<std::string>();
      if (!asked_for_.contains(name)) all.push_back(row);
    }
  }
  for (const Json& row : rows_) all.push_back(row);
  return all;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

}  // namespace rondo::benchmarks

int main(int argc, char** argv) {
  using namespace rondo::benchmarks;
  const BenchmarkOptions options = parse_options(argc, argv, "links", {{"--only", ""}, {"--timeout", "600"}});
  LinkCases cases(options);
  std::printf("%-10s %-72s %14s %14s %9s %7s %8s  %s\n", "table", "case", "finish us", "bound us", "gap %",
              "chunks", "wall s", "engine");
  fat_trees(cases);
  message_costs(cases);
  drift(cases);
  steps(cases);
  write_results(options, cases.rows());
  return cases.all_succeeded() ? 0 : 1;
}
