// SCCL's synthesis (PPoPP 2021): every row of its tables 4 (DGX-1) and 5 (Gigabyte Z52, a ring of 8),
// answered by engine steps, with the seconds that the paper gives; what the frontier of AllGather rules out;
// and z3 on the paper's own encoding on this machine.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "case_runner.hpp"
#include "paper_formula.hpp"
#include "rondo/io/topology_files.hpp"

namespace rondo::benchmarks {
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
    c.by_z3 =
        (c.collective == Collective::allgather && c.chunks >= 2) || c.collective == Collective::alltoall;
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

/// Seconds that z3 takes, or `cap_s` where that is not enough; its answer in `answer`.
double z3_seconds(const Case& c, int cap_s, std::string& answer) {
  const Topology topology = load_topology(c.fabric);
  const Demand demand = make_demand(c.collective, 1e9, topology.num_gpus(), chunks_of(c));
  const std::string file = fmt::format("{}/rondo_sccl_{}.smt2", P_tmpdir, getpid());
  std::ofstream(file) << paper_formula(make_step_instance(topology, demand, c.steps, c.rounds));
  double wall_s = 0;
  const std::string said = file + ".out";
  run_command({"/bin/sh", "-c", fmt::format("z3 -T:{} {} > {}", cap_s, file, said)}, &wall_s);
  std::ifstream(said) >> answer;
  std::remove(file.c_str());
  std::remove(said.c_str());
  return wall_s;
}

nlohmann::ordered_json run(const BenchmarkOptions& options, const Case& c) {
  const std::vector<std::string> arguments{"--topology",   c.fabric,
                                           "--collective", std::string(to_string(c.collective)),
                                           "--size",       "1GB",
                                           "--engine",     "steps",
                                           "--chunks",     std::to_string(chunks_of(c)),
                                           "--steps",      std::to_string(c.steps),
                                           "--rounds",     std::to_string(c.rounds)};
  constexpr int kRefused = 69;
  const CaseResult r = solve_case(options.rondo, 1, arguments, 600);
  nlohmann::ordered_json row{{"case", name_of(c)},
                             {"fabric", c.fabric},
                             {"collective", std::string(to_string(c.collective))},
                             {"chunks", c.chunks},
                             {"steps", c.steps},
                             {"rounds", c.rounds},
                             {"paper_s", c.paper_s > 0 ? nlohmann::ordered_json(c.paper_s) : nullptr},
                             {"wall_s", r.wall_s}};
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
  if (cap_s > 0 && c.by_z3) {
    std::string answer;
    row["z3_s"] = z3_seconds(c, cap_s, answer);
    row["z3_answer"] = answer;
  }
  std::printf("%-40s %-10s %8.3f s  paper %6.1f s  z3 %8.3f s %s\n", name_of(c).c_str(),
              row["answer"].get<std::string>().c_str(), r.wall_s, c.paper_s, row.value("z3_s", 0.0),
              row.value("z3_answer", "").c_str());
  std::fflush(stdout);
  return row;
}

}  // namespace
}  // namespace rondo::benchmarks

int main(int argc, char** argv) {
  using namespace rondo::benchmarks;
  const BenchmarkOptions options = parse_options(argc, argv, "sccl", {{"--only", ""}, {"--z3", "0"}});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool all_as_expected = true;
  for (const Case& c : cases()) {
    if (name_of(c).find(options.own.at("--only")) == std::string::npos) continue;
    rows.push_back(run(options, c));
    all_as_expected = all_as_expected && rows.back()["answer"] == (c.exists ? "schedule" : "none");
  }
  write_results(options, rows, {{"z3_cap_s", options.number("--z3", 0)}});
  return all_as_expected ? 0 : 1;
}
