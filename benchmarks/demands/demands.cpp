// Data that several want: Broadcast and its reverse, mixes of pairs and multicasts.

#include "demands.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace rondo::benchmarks {

using Json = nlohmann::ordered_json;

DemandCases::DemandCases(const BenchmarkOptions& options)
    : options_(options), timeout_s_(options.number("--timeout", 1)) {}

bool DemandCases::wants(const std::string& table, const std::string& name) const {
  return (table + ": " + name).find(options_.own.at("--only")) != std::string::npos;
}

void DemandCases::solve(const std::string& table, const std::string& name, const std::string& arguments,
                        const Json& more) {
  if (!wants(table, name)) return;
  asked_for_.insert(table + ": " + name);
  std::vector<std::string> words;
  std::istringstream stream(arguments);
  for (std::string word; stream >> word;) words.push_back(word);
  const CaseResult result = solve_case(options_.rondo, options_.ranks, words, timeout_s_);
  if (const std::string failure = result.failure(); !failure.empty()) {
    std::printf("%-10s %-60s failed: %s\n", table.c_str(), name.c_str(), failure.c_str());
    std::fflush(stdout);
    all_succeeded_ = false;
    return;
  }
  const Json& report = result.report;
  std::printf("%-10s %-60s %14.3f %14.3f %9.4f %7d %8.2f  %s\n", table.c_str(), name.c_str(),
              report["finish_us"].get<double>(), report["lower_bound_us"].get<double>(),
              100 * report["gap"].get<double>(), report["chunks"].get<int>(), result.wall_s,
              report["engine"].get<std::string>().c_str());
  std::fflush(stdout);
  Json row{{"table", table}, {"case", name}, {"arguments", arguments}, {"wall_s", result.wall_s}};
  row.update(more);
  row["report"] = report;
  rows_.push_back(std::move(row));
}

Json DemandCases::rows() const {
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

}  // namespace rondo::benchmarks

int main(int argc, char** argv) {
  using namespace rondo::benchmarks;
  const BenchmarkOptions options =
      parse_options(argc, argv, "demands", {{"--only", ""}, {"--timeout", "600"}});
  DemandCases cases(options);
  std::printf("%-10s %-60s %14s %14s %9s %7s %8s  %s\n", "table", "case", "finish us", "bound us", "gap %",
              "chunks", "wall s", "engine");
  rooted(cases);
  mixed(cases);
  named(cases);
  write_results(options, cases.rows());
  return cases.all_succeeded() ? 0 : 1;
}
