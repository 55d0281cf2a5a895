// SCCL's synthesis (PPoPP 2021): every row of its tables 4 (DGX-1) and 5 (Gigabyte Z52, a ring of 8),
// answered by engine steps, with the seconds that the paper gives; what the frontier of AllGather rules out;
// and z3 on the paper's own encoding on this machine. Commands run without mpirun, whose start takes longer
// than most of them.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "case_runner.hpp"
#include "paper_formula.hpp"
#include "rondo/io/topology_files.hpp"

namespace rondo::benchmarks::sccl {
namespace {

constexpr const char* kDgx1 = "dgx1";
constexpr const char* kZ52 = "ring:gpus=8";
constexpr const char* kTorus8 = "torus:dims=2x4";
constexpr const char* kTorus16 = "torus:dims=4x4";

/// As the paper counts: chunks of a GPU's data.
struct Case {
  const char* fabric;
  Collective collective;
  int chunks;
  int steps;
  int rounds;
  double paper_s;  ///< 0: no row of the paper
  bool exists = true;
  bool by_z3 = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const char* fabric, Collective collective, std::vector<std::array<double, 4>> rows,
                       bool exists = true) {
    for (const auto& [c, s, r, seconds] : rows)
      all.push_back({fabric, collective, static_cast<int>(c), static_cast<int>(s), static_cast<int>(r),
                     seconds, exists});
  };
  const std::vector<std::array<double, 4>> allgather{{1, 2, 2, 0.3}, {2, 3, 3, 0.8}, {3, 4, 4, 1.5},
                                                     {4, 5, 5, 2.3}, {5, 6, 6, 3.3}, {6, 7, 7, 4.6},
                                                     {6, 3, 7, 6.6}, {2, 2, 3, 0.9}};
  const std::vector<std::array<double, 4>> gather{{1, 2, 2, 0.3},  {2, 3, 3, 0.9}, {3, 4, 4, 1.6},
                                                  {4, 5, 5, 2.7},  {5, 6, 6, 3.8}, {6, 7, 7, 6.0},
                                                  {6, 3, 7, 11.4}, {2, 2, 3, 1.0}};
  add(kDgx1, Collective::allgather, allgather);
  add(kDgx1, Collective::allreduce,
      {{8, 4, 4, 0.3},
       {16, 6, 6, 0.6},
       {24, 8, 8, 1.3},
       {32, 10, 10, 2.9},
       {40, 12, 12, 5.6},
       {48, 14, 14, 12.8},
       {48, 6, 14, 23.0},
       {16, 4, 6, 0.8}});
  add(kDgx1, Collective::broadcast,
      {{2, 2, 2, 0.1}, {6, 3, 3, 0.3}, {12, 4, 4, 1.0}, {18, 5, 5, 8.5}, {6, 3, 5, 0.9}});
  add(kDgx1, Collective::gather, gather);
  add(kDgx1, Collective::alltoall, {{8, 3, 3, 2.6}, {8, 2, 3, 3.0}, {24, 8, 8, 133.7}, {24, 2, 8, 24.3}});
  add(kZ52, Collective::allgather, {{1, 4, 4, 0.5}, {2, 7, 7, 1.3}, {2, 4, 7, 1.7}});
  add(kZ52, Collective::allreduce, {{8, 8, 8, 0.4}, {16, 14, 14, 0.9}, {16, 8, 14, 1.6}});
  add(kZ52, Collective::broadcast,
      {{2, 4, 4, 0.1}, {4, 5, 5, 0.2}, {6, 6, 6, 0.3}, {8, 7, 7, 0.5}, {10, 8, 8, 0.6}});
  add(kZ52, Collective::gather, {{1, 4, 4, 0.4}, {2, 4, 7, 1.8}});
  add(kZ52, Collective::alltoall, {{8, 4, 8, 8.2}});
  // Beyond the paper: what rondo pareto finds to be the frontier of tori, whose last points meet the bound on
  // bandwidth, and one round less.
  add(kTorus8, Collective::allgather, {{1, 3, 3, 0}, {3, 3, 7, 0}});
  add(kTorus8, Collective::allreduce, {{24, 6, 14, 0}});
  add(kTorus8, Collective::alltoall, {{8, 3, 4, 0}});
  add(kTorus16, Collective::allgather, {{1, 4, 4, 0}, {4, 11, 15, 0}});
  add(kTorus16, Collective::alltoall, {{16, 4, 8, 0}});
  add(kTorus8, Collective::allgather, {{3, 3, 6, 0}}, false);
  add(kTorus16, Collective::alltoall, {{16, 4, 7, 0}}, false);
  // What is cheaper than (2, 2, 3) in two steps, and than what the ring's bandwidth allows in four.
  add(kDgx1, Collective::allgather, {{3, 2, 4, 0}, {4, 2, 5, 0}, {5, 2, 6, 0}, {2, 2, 2, 0}}, false);
  add(kZ52, Collective::allgather, {{1, 3, 7, 0}, {2, 4, 6, 0}}, false);
  for (Case& c : all) {
    c.by_z3 = c.paper_s > 0 || (c.collective == Collective::allgather && c.chunks >= 2) ||
              c.collective == Collective::alltoall;
  }
  return all;
}

std::string name_of(const Case& c) {
  return fmt::format("{} {} ({},{},{})", c.fabric, std::string(to_string(c.collective)), c.chunks, c.steps,
                     c.rounds);
}

/// Rondo's --chunks: of a contribution, which of AllToAll is each pair's part.
int chunks_of(const Case& c) {
  const auto gpus = static_cast<int>(load_topology(c.fabric).num_gpus());
  return c.collective == Collective::alltoall ? c.chunks / gpus : c.chunks;
}

/// The AllGather that follows a ReduceScatter, the same backwards, in an AllReduce.
Case half_of(const Case& c) {
  Case half = c;
  half.collective = Collective::allgather;
  half.chunks /= static_cast<int>(load_topology(c.fabric).num_gpus());
  half.steps /= 2;
  half.rounds /= 2;
  return half;
}

StepInstance instance_of(const Case& c) {
  if (c.collective == Collective::allreduce) return instance_of(half_of(c));
  const Topology topology = load_topology(c.fabric);
  const Demand demand = make_demand(c.collective, 1e9, topology.num_gpus(), chunks_of(c));
  return make_step_instance(topology, demand, c.steps, c.rounds);
}

/// z3's processor seconds and answer, "timeout" after `cap_s` of them.
void add_z3(nlohmann::ordered_json& row, const Case& c, int cap_s) {
  const std::string file = fmt::format("{}/rondo_sccl_{}.smt2", P_tmpdir, getpid());
  std::ofstream(file) << paper_formula(instance_of(c));
  const std::string said = file + ".out";
  double wall_s = 0, cpu_s = 0;
  run_command({"/bin/sh", "-c", fmt::format("ulimit -t {}; z3 {} > {}", cap_s, file, said)}, &wall_s, &cpu_s);
  std::string answer;
  std::ifstream(said) >> answer;
  row["z3_s"] = cpu_s;
  row["z3_answer"] = answer.empty() ? "timeout" : answer;
  row["z3_cap_s"] = cap_s;
  std::remove(file.c_str());
  std::remove(said.c_str());
}

/// The row of a case; null where there is none.
nlohmann::ordered_json row_of(const nlohmann::ordered_json& rows, const std::string& name) {
  for (const auto& row : rows)
    if (!row.is_null() && row["case"] == name) return row;
  return nullptr;
}

/// `earlier`: the row of the case in the file of results, if any; `rows`: of the cases before this one.
nlohmann::ordered_json run(const BenchmarkOptions& options, const Case& c,
                           const nlohmann::ordered_json& earlier, const nlohmann::ordered_json& rows) {
  const std::vector<std::string> arguments{"--topology",   c.fabric,
                                           "--collective", std::string(to_string(c.collective)),
                                           "--size",       "1GB",
                                           "--engine",     "steps",
                                           "--chunks",     std::to_string(chunks_of(c)),
                                           "--steps",      std::to_string(c.steps),
                                           "--rounds",     std::to_string(c.rounds)};
  constexpr int kRefused = 69;
  const CaseResult r = solve_case(options.rondo, 0, arguments, 600);
  nlohmann::ordered_json row{{"case", name_of(c)},
                             {"fabric", c.fabric},
                             {"collective", std::string(to_string(c.collective))},
                             {"chunks", c.chunks},
                             {"steps", c.steps},
                             {"rounds", c.rounds},
                             {"paper_s", c.paper_s > 0 ? nlohmann::ordered_json(c.paper_s) : nullptr},
                             {"wall_s", r.wall_s},
                             {"cpu_s", r.cpu_s}};
  const std::string failure = r.failure();
  if (failure.empty()) {
    row["answer"] = "schedule";
    row["search_s"] = r.report["wall_parts_s"]["search"];
    row["report"] = r.report;
  } else {
    row["answer"] = r.exit_code == kRefused && !r.timed_out ? "none" : failure;
    row["search_s"] = nullptr;
    row["report"] = nullptr;
  }
  const int cap_s = options.number("--z3", 0);
  nlohmann::ordered_json half;  // of AllReduce z3 would get the formula of an AllGather once more
  if (c.collective == Collective::allreduce) half = row_of(rows, name_of(half_of(c)));
  const nlohmann::ordered_json& by_z3 = half.contains("z3_s") ? half : earlier;
  if (cap_s > 0 && c.by_z3 && !half.contains("z3_s")) {
    add_z3(row, c, cap_s);
  } else {
    for (const char* key : {"z3_s", "z3_answer", "z3_cap_s"})
      if (by_z3.contains(key)) row[key] = by_z3[key];
  }
  std::printf("%-40s %-10s %8.3f s (CPU %8.3f s)  paper %6.1f s  z3 %8.3f s %s\n", name_of(c).c_str(),
              row["answer"].get<std::string>().c_str(), r.wall_s, r.cpu_s, c.paper_s, row.value("z3_s", 0.0),
              row.value("z3_answer", "").c_str());
  std::fflush(stdout);
  return row;
}

/// Of the rows of the paper that z3 was given: how many times as long as Rondo's `key` it takes, where it met
/// its cap at least. The start of a command is part of it, of z3's and of Rondo's alike.
void print_speed(const nlohmann::ordered_json& rows, const char* key) {
  double logarithms = 0;
  int count = 0, capped = 0;
  for (const auto& row : rows) {
    if (!row.contains("z3_s") || row["paper_s"].is_null() || !row[key].is_number()) continue;
    logarithms += std::log(row["z3_s"].get<double>() / row[key].get<double>());
    capped += row["z3_answer"] == "timeout" ? 1 : 0;
    ++count;
  }
  if (count == 0) return;
  std::printf("z3 over %s, geometric mean of %d rows of the paper (%d of them capped): %.1f\n", key, count,
              capped, std::exp(logarithms / count));
}

}  // namespace

int benchmark(int argc, char** argv) {
  const BenchmarkOptions options = parse_options(argc, argv, "sccl", {{"--only", ""}, {"--z3", "0"}});
  nlohmann::ordered_json earlier = nlohmann::ordered_json::array();
  if (std::ifstream file(options.json); file) earlier = nlohmann::ordered_json::parse(file)["rows"];
  const std::vector<Case> all = cases();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();  // null: not measured yet
  for (const Case& c : all) rows.push_back(row_of(earlier, name_of(c)));
  const auto measured = [&rows] {
    nlohmann::ordered_json found = nlohmann::ordered_json::array();
    for (const auto& row : rows)
      if (!row.is_null()) found.push_back(row);
    return found;
  };
  bool all_as_expected = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (name_of(all[i]).find(options.own.at("--only")) == std::string::npos) continue;
    rows[i] = run(options, all[i], rows[i], rows);
    save_results(options, measured());
    all_as_expected = all_as_expected && rows[i]["answer"] == (all[i].exists ? "schedule" : "none");
  }
  for (const char* key : {"search_s", "wall_s", "cpu_s"}) print_speed(measured(), key);
  write_results(options, measured());
  return all_as_expected ? 0 : 1;
}

}  // namespace rondo::benchmarks::sccl
