#include "table_cases.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace rondo::benchmarks {
namespace {

constexpr int kNameWidth = 72;

}  // namespace

using Json = nlohmann::ordered_json;

void TableCases::print_heading() {
  std::printf("%-10s %-*s %14s %14s %9s %7s %8s  %s\n", "table", kNameWidth, "case", "finish us", "bound us",
              "gap %", "chunks", "wall s", "engine");
}

TableCases::TableCases(const BenchmarkOptions& options)
    : options_(options), timeout_s_(options.number("--timeout", 1)) {}

bool TableCases::wants(const std::string& table, const std::string& name) const {
  return (table + ": " + name).find(options_.own.at("--only")) != std::string::npos;
}

std::optional<CaseResult> TableCases::solve(const std::string& table, const std::string& name,
                                            const std::vector<std::string>& arguments,
                                            const std::filesystem::path& keep) {
  CaseResult result = solve_case(options_.rondo, options_.ranks, arguments, timeout_s_, keep);
  if (const std::string failure = result.failure(); !failure.empty()) {
    fail(table, name, failure);
    return std::nullopt;
  }
  const Json& report = result.report;
  std::printf("%-10s %-*s %14.3f %14.3f %9.4f %7d %8.2f  %s\n", table.c_str(), kNameWidth, name.c_str(),
              report["finish_us"].get<double>(), report["lower_bound_us"].get<double>(),
              100 * report["gap"].get<double>(), report["chunks"].get<int>(), result.wall_s,
              report["engine"].get<std::string>().c_str());
  std::fflush(stdout);
  return result;
}

void TableCases::solve_row(const std::string& table, const std::string& name, const std::string& arguments,
                           const Json& more) {
  if (!wants(table, name)) return;
  const std::optional<CaseResult> result = solve(table, name, words(arguments));
  if (!result) return;
  Json row{{"arguments", arguments}, {"wall_s", result->wall_s}, {"report", result->report}};
  row.update(more);
  add(table, name, row);
}

void TableCases::add(const std::string& table, const std::string& name, const Json& row) {
  Json whole{{"table", table}, {"case", name}};
  whole.update(row);
  rows_.push_back(std::move(whole));
  asked_for_.insert(table + ": " + name);
}

void TableCases::fail(const std::string& table, const std::string& name, const std::string& why) {
  std::printf("%-10s %-*s failed: %s\n", table.c_str(), kNameWidth, name.c_str(), why.c_str());
  std::fflush(stdout);
  all_succeeded_ = false;
  asked_for_.insert(table + ": " + name);
}

Json TableCases::rows() const {
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
