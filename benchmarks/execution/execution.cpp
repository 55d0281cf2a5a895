// Schedules, their MSCCL XML and MSCCL++ plans with real bytes: every shipped topology up to 32 GPUs and some
// of 64 as XML, eight fabrics as plans; each program accepted by its checker and executed on several numbers
// of ranks, every byte where the collective wants it. Plans of other producers likewise.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"

namespace rondo::benchmarks::execution {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

constexpr int kMostGpusOfShipped = 32;

struct Case {
  std::string fabric;
  std::string collective;
  Words export_options = {};  ///< what keeps the XML within the executor's caps
  bool as_plan = false;       ///< of MSCCL++, instead of the schedule and its XML
  std::string file = {};      ///< a plan of another producer
};

std::vector<Case> cases_of_xml() {
  Words shipped;
  for (const auto& entry : std::filesystem::directory_iterator(RONDO_SOURCE_DIR "/jobs/topologies")) {
    std::ifstream file(entry.path());
    const Json nodes = Json::parse(file).at("nodes");
    const auto gpus =
        std::count_if(nodes.begin(), nodes.end(), [](const Json& n) { return n["kind"] == "gpu"; });
    if (gpus <= kMostGpusOfShipped) shipped.push_back(entry.path().stem().string());
  }
  std::sort(shipped.begin(), shipped.end());
  std::vector<Case> all;
  for (const std::string& fabric : shipped) {
    all.push_back({fabric, "allgather"});
    all.push_back({fabric, "alltoall"});
  }
  for (const char* of_64 : {"torus:dims=8x8", "rails:boxes=8,rails=2", "star:chassis=8,intra=ndv2"}) {
    all.push_back({of_64, "allgather"});
    all.push_back({of_64, "alltoall", {"--max-peers", "16"}});
  }
  return all;
}

std::vector<Case> cases_of_plans() {
  std::vector<Case> all;
  for (const char* fabric : {"ring:gpus=8", "full:gpus=8", "torus:dims=3x3", "mesh:dims=3x3",
                             "rails:boxes=2,rails=2", "dgx1", "amd-1", "ndv2-2"}) {
    for (const char* collective : {"allgather", "reducescatter", "allreduce", "alltoall"})
      all.push_back({fabric, collective, {}, true});
  }
  return all;
}

/// Every JSON file of `folder`, as a plan.
std::vector<Case> cases_of_others(const std::string& folder) {
  std::vector<Case> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    all.push_back(
        {entry.path().filename().string(), Json::parse(file).at("collective"), {}, true, entry.path()});
  }
  std::ranges::sort(all, {}, &Case::fabric);
  return all;
}

Words numbers(const std::string& list) {
  std::istringstream stream(list);
  Words all;
  for (std::string word; std::getline(stream, word, ',');) all.push_back(word);
  return all;
}

/// The commands of one case, in a folder of their own; the first that fails ends it.
class CaseRun {
 public:
  CaseRun(const BenchmarkOptions& options, const Case& of)
      : options_(options),
        case_(of),
        folder_(std::filesystem::temp_directory_path() / ("rondo-execution-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
  }
  ~CaseRun() { std::filesystem::remove_all(folder_); }
  CaseRun(const CaseRun&) = delete;
  CaseRun& operator=(const CaseRun&) = delete;

  /// One row a program: the schedule and the XML of each placement, or the plans.
  Json rows() {
    if (!case_.file.empty()) return rows_of_file();
    return case_.as_plan ? rows_of_plans() : rows_of_xml();
  }
  const std::string& failure() const { return failure_; }

 private:
  Json rows_of_xml() {
    const bool all_gather = case_.collective == "allgather";
    solve(all_gather ? "4" : "1");
    Json rows = Json::array({executed("schedule", folder_.string())});
    add_programs({"xml", "msccl-xml", ".xml", "check-xml", case_.export_options}, all_gather, rows);
    return rows;
  }

  /// In few chunks: a plan has at most 108 threadblocks a GPU.
  Json rows_of_plans() {
    Json rows = Json::array();
    solve("1");
    add_programs({"plan", "mscclpp", ".plan.json", "check-plan"}, case_.collective != "alltoall", rows);
    return rows;
  }

  void solve(const std::string& chunks) {
    rondo({"solve", "--topology", case_.fabric, "--collective", case_.collective, "--size", "16MB",
           "--chunks", chunks, "--gap", "25%", "--output", folder_.string()});
  }

  struct ProgramKind {
    std::string name, format, extension, check;
    Words export_options = {};
  };

  /// The schedule's program, out of place and, where it may be, in place: exported, checked and executed.
  void add_programs(const ProgramKind& kind, bool in_place_too, Json& rows) {
    const std::string run = folder_.string();
    Words placements = {"out-of-place"};
    if (in_place_too) placements.push_back("in-place");
    for (const std::string& placement : placements) {
      const std::string file = run + "/" + placement + kind.extension;
      Words words = {"export", run, "--format", kind.format, "--placement", placement, "--output", file};
      words.insert(words.end(), kind.export_options.begin(), kind.export_options.end());
      const double export_s = rondo(words);
      const double check_s = rondo({kind.check, file});
      Json row = executed(kind.name + " " + placement, file);
      row["export_s"] = export_s;
      row["check_s"] = check_s;
      rows.push_back(row);
    }
  }

  /// What others wrote may have races that the checker finds, and end right all the same.
  Json rows_of_file() {
    constexpr int kRefused = 65;
    const int answer = run_command({options_.rondo.string(), "check-plan", case_.file}, nullptr);
    if (answer != 0 && answer != kRefused)
      failure_ = "exit code " + std::to_string(answer) + " of check-plan";
    Json row = executed("plan of others", case_.file);
    row["check"] = answer == 0 ? "accepted" : "refused";
    return Json::array({row});
  }

  double rondo(Words words, const std::string& ranks = "1") {
    if (!failure_.empty()) return 0;
    words.insert(words.begin(), {"mpirun", "-n", ranks, options_.rondo.string()});
    double wall_s = 0;
    const int exit_code = run_command(words, &wall_s);
    if (exit_code != 0) {
      failure_ = "exit code " + std::to_string(exit_code) + " of";
      for (const std::string& word : words) failure_ += " " + word;
    }
    return wall_s;
  }

  Json executed(const std::string& what, const std::string& path) {
    Json row{{"fabric", case_.fabric}, {"collective", case_.collective}, {"program", what}};
    for (const std::string& option : case_.export_options) row["export_options"].push_back(option);
    for (const std::string& ranks : numbers(options_.own.at("--executed-on"))) {
      const double wall_s = rondo({"execute", path, "--bytes", "1MB"}, ranks);
      row["execute_s"][ranks] = wall_s;
    }
    return row;
  }

  const BenchmarkOptions& options_;
  const Case& case_;
  const std::filesystem::path folder_;
  std::string failure_;
};

bool is_plan(const Json& row) {
  return row.at("program").get<std::string>().starts_with("plan");
}

/// Rows in the file of results, but those of these cases.
Json rows_of_others(const std::filesystem::path& results, const std::vector<Case>& cases) {
  Json kept = Json::array();
  std::ifstream file(results);
  if (!file) return kept;
  const Json earlier = Json::parse(file);
  for (const Json& row : earlier.at("rows")) {
    const bool is_made = std::ranges::any_of(cases, [&](const Case& of) {
      return row.at("fabric") == of.fabric && row.at("collective") == of.collective &&
             is_plan(row) == of.as_plan;
    });
    if (!is_made) kept.push_back(row);
  }
  return kept;
}

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options =
      parse_options(argc, argv, "execution",
                    {{"--only", ""}, {"--programs", ""}, {"--plans", ""}, {"--executed-on", "1,2,4"}});
  const std::string& only = options.own.at("--only");
  const std::string& programs = options.own.at("--programs");
  const std::string& others = options.own.at("--plans");
  if (!programs.empty() && programs != "xml" && programs != "plans") {
    std::cerr << "--programs is '" << programs << "'; give xml or plans, or leave it out for both\n";
    return 64;
  }
  std::vector<Case> cases;
  if (programs != "plans") cases = cases_of_xml();
  if (programs != "xml") std::ranges::move(cases_of_plans(), std::back_inserter(cases));
  if (!others.empty()) cases = cases_of_others(others);
  std::erase_if(cases, [&](const Case& of) { return !only.empty() && of.fabric != only; });
  Json rows = rows_of_others(options.json, cases);
  int failed = 0, ran = 0;
  for (const Case& of : cases) {
    ++ran;
    CaseRun run(options, of);
    const Json of_case = run.rows();
    if (!run.failure().empty()) {
      std::cout << of.fabric << ' ' << of.collective << ": " << run.failure() << std::endl;
      ++failed;
      continue;
    }
    for (const Json& row : of_case) {
      std::printf("%-26s %-9s %-16s equal on %s ranks", of.fabric.c_str(), of.collective.c_str(),
                  row["program"].get<std::string>().c_str(), options.own.at("--executed-on").c_str());
      if (row.contains("export_s")) std::printf(", export %.2f s", row["export_s"].get<double>());
      if (row.contains("check_s")) std::printf(", check %.2f s", row["check_s"].get<double>());
      if (row.contains("check")) std::printf(", check: %s", row["check"].get<std::string>().c_str());
      std::printf("\n");
      rows.push_back(row);
    }
    std::fflush(stdout);
  }
  write_results(options, rows);
  if (ran == 0) std::cerr << "no case of fabric '" << only << "'\n";
  return failed == 0 && ran > 0 ? 0 : 1;
}

}  // namespace rondo::benchmarks::execution
