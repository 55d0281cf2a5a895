#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "program.hpp"
#include "rondo/io/json_files.hpp"

/// What the commands do when all is well.
namespace rondo::test::test_commands {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

const Words kCommands = {"solve",
                         "resume",
                         "reassemble",
                         "verify",
                         "bound",
                         "compare",
                         "export",
                         "execute",
                         "check-xml",
                         "info",
                         "topology list",
                         "topology show",
                         "topology check",
                         "topology generate",
                         "topology compose",
                         "profile"};

/// AllGather of 30 KB on a generated ring of four GPUs; any schedule is good enough unless `more` says
/// otherwise.
Words solve_ring(const std::string& more = "") {
  return split(
      "solve --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 --collective allgather --size 30KB "
      "--output out " +
      more + (contains(more, "--gap") ? "" : " --gap 100%"));
}

using Commands = ProgramTest;

TEST_F(Commands, HelpNamesEveryCommandAndExitCode) {
  const std::string help = succeed({"--help"});
  for (const std::string& command : kCommands) EXPECT_TRUE(contains(help, "rondo " + command)) << command;
  for (const char* code : {"64", "65", "66", "69", "70", "73", "74", "75"})
    EXPECT_TRUE(contains(help, code)) << code;
  EXPECT_TRUE(contains(succeed({"topology", "--help"}), "topology check"));
}

TEST_F(Commands, ParetoPrintsWhatChunksAndSizeTrade) {
  const std::string out = succeed(solve_ring("--pareto trade.svg"));
  EXPECT_TRUE(contains(out, "most on a link"));
  EXPECT_TRUE(contains(out, "size bytes"));
  EXPECT_TRUE(contains(out, "7500 "));  // a quarter of the size
  EXPECT_TRUE(read_file(at("trade.svg")).starts_with("<svg"));
}

TEST_F(Commands, EveryCommandHasHelp) {
  for (const std::string& command : kCommands) {
    Words arguments = split(command);
    arguments.emplace_back("--help");
    const std::string help = succeed(arguments);
    EXPECT_TRUE(contains(help, "rondo " + command)) << help;
    EXPECT_TRUE(contains(help, "--config")) << help;
  }
  const std::string solve = succeed({"solve", "--help"});
  for (const char* word :
       {"list", "flow", "milp", "allgather", "alltoall", "KiB", "(=auto)", "(=2500000)", "Examples"}) {
    EXPECT_TRUE(contains(solve, word)) << word;
  }
  EXPECT_TRUE(contains(succeed(split("topology list")), "dims"));
}

TEST_F(Commands, VersionNamesTheLibraries) {
  const std::string version = succeed({"--version"});
  for (const char* name : {"rondo ", "openmpi ", "hdf5 ", "clp ", "cbc "})
    EXPECT_TRUE(contains(version, name)) << name;
}

TEST_F(Commands, PrintConfigRoundTrips) {
  const std::string printed =
      succeed(solve_ring("--gap 1% --seed 7 --chunks 3 --engine list --force --print-config"));
  EXPECT_TRUE(contains(printed, "gap = 1%\n")) << printed;
  EXPECT_TRUE(contains(printed, "improve-work = 2500000\n")) << printed;
  EXPECT_FALSE(fs::exists(at("out")));
  write_file(at("c.cfg"), printed);
  EXPECT_EQ(succeed(split("solve --config c.cfg --print-config")), printed);
  EXPECT_EQ(succeed(split("solve --config c.cfg --print-config"), 4), printed);
}

TEST_F(Commands, TheCommandLineWinsOverTheConfig) {
  write_file(at("c.cfg"), "# a comment\nsize = 1GB\nseed = 3\n");
  const std::string printed = succeed(split("solve --config c.cfg --size 2GB --print-config"));
  EXPECT_TRUE(contains(printed, "size = 2GB\n")) << printed;
  EXPECT_TRUE(contains(printed, "seed = 3\n")) << printed;
}

TEST_F(Commands, ShippedJobFilesAreWellFormed) {
  int jobs = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(RONDO_SOURCE_DIR) / "jobs")) {
    if (entry.path().extension() != ".cfg") continue;
    EXPECT_TRUE(contains(succeed({"solve", "--config", entry.path(), "--print-config"}), "topology = "));
    ++jobs;
  }
  EXPECT_GT(jobs, 0);
}

TEST_F(Commands, SolveWritesARunFolder) {
  const std::string line = succeed(solve_ring("--engine list --chunks 2 --seed 5"));
  for (const char* word : {"finish", "algorithm bandwidth", "lower bound", "gap", "schedule.h5"}) {
    EXPECT_TRUE(contains(line, word)) << line;
  }
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(at("out"))) files.insert(entry.path().filename());
  EXPECT_EQ(files, (std::set<std::string>{"problem.json", "schedule.h5", "report.json"}));

  const Json report = read_json(at("out/report.json"));
  for (const char* name : {"finish_us", "lower_bound_us", "gap", "algorithm_bandwidth_GBps", "engine",
                           "chunks", "ranks", "wall_s", "wall_parts_s", "peak_rss_bytes", "sends",
                           "schedule_digest", "seed", "limits_hit", "versions", "candidates"}) {
    EXPECT_TRUE(report.contains(name)) << name;
  }
  EXPECT_EQ(report["chunks"], 2);
  EXPECT_EQ(report["ranks"], 1);
  EXPECT_TRUE(report["wall_s"].is_number());
  EXPECT_GT(report["peak_rss_bytes"]["max"], 1'000'000);
  EXPECT_GE(report["peak_rss_bytes"]["sum"], report["peak_rss_bytes"]["max"]);
  // A GPU lacks 22,500 bytes and has two in-links of 10 GB/s: 1.125 us, and the data of the farthest comes
  // over two hops.
  EXPECT_GE(report["finish_us"], report["lower_bound_us"]);
  EXPECT_GE(report["lower_bound_us"], 2);
  EXPECT_NEAR(report["algorithm_bandwidth_GBps"].get<double>(), 30 / report["finish_us"].get<double>(), 1e-9);

  const Json problem = read_json(at("out/problem.json"));
  EXPECT_EQ(problem["collective"], "allgather");
  EXPECT_EQ(problem["options"]["seed"], 5);
  EXPECT_EQ(problem["topology"]["nodes"].size(), 4U);
}

TEST_F(Commands, TheScheduleIsTheSameOnAnyNumberOfRanks) {
  std::set<std::string> digests;
  std::set<std::string> problems;
  for (const int ranks : {1, 2, 4}) {
    succeed(solve_ring("--force"), ranks);
    const Json report = read_json(at("out/report.json"));
    EXPECT_EQ(report["ranks"], ranks);
    digests.insert(report["schedule_digest"]);
    problems.insert(read_file(at("out/problem.json")));
  }
  EXPECT_EQ(digests.size(), 1U);
  EXPECT_EQ(problems.size(), 1U);
}

TEST_F(Commands, ASolvedFolderIsAnsweredUnlessForced) {
  const std::string first = succeed(solve_ring("--engine list"));
  const std::string report = read_file(at("out/report.json"));
  const std::string again = succeed(solve_ring("--engine list"), 2);
  EXPECT_TRUE(contains(again, "already solved")) << again;
  EXPECT_TRUE(contains(again, first)) << again;
  EXPECT_EQ(read_file(at("out/report.json")), report);

  EXPECT_FALSE(contains(succeed(solve_ring("--engine list --force")), "already solved"));
  EXPECT_NE(read_file(at("out/report.json")), report);  // its times differ
}

TEST_F(Commands, ForceReplacesAnotherProblem) {
  succeed(solve_ring("--engine list"));
  succeed(solve_ring("--engine list --seed 1 --force"));
  EXPECT_EQ(read_json(at("out/problem.json"))["options"]["seed"], 1);
  succeed({"verify", "out"});
}

TEST_F(Commands, AnUnfinishedFolderIsSolvedAgain) {
  succeed(solve_ring("--engine list"));
  fs::remove(at("out/report.json"));
  EXPECT_FALSE(contains(succeed(solve_ring("--engine list")), "already solved"));
  EXPECT_TRUE(fs::exists(at("out/report.json")));
}

TEST_F(Commands, VerifyAcceptsWhatSolveAndExportWrite) {
  succeed(solve_ring("--engine list"));
  succeed(split("export out --format json --output s.json"));
  EXPECT_EQ(read_json(at("s.json"))["format"], "rondo-schedule");
  const std::string of_folder = succeed({"verify", "out"});
  EXPECT_TRUE(contains(of_folder, "valid: allgather of 30 KB")) << of_folder;
  EXPECT_EQ(succeed({"verify", "out/schedule.h5"}), of_folder);
  EXPECT_EQ(succeed({"verify", "s.json"}), of_folder);
}

TEST_F(Commands, VerifyNamesTheViolation) {
  succeed(solve_ring("--engine list"));
  succeed(split("export out --output s.json"));
  const Json good = read_json(at("s.json"));
  const auto expect_invalid = [&](const Json& bad, const std::string& word) {
    write_file(at("bad.json"), bad.dump());
    const Outcome outcome = rondo({"verify", "bad.json"});
    EXPECT_EQ(outcome.exit_code, 65) << outcome.out;
    EXPECT_TRUE(contains(outcome.err, word)) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "bad.json")) << outcome.err;
  };
  Json bad = good;
  bad["sends"]["start_us"][0] = bad["sends"]["start_us"][0].get<double>() + 0.5;
  expect_invalid(bad, "send");
  bad = good;
  bad["finish_us"] = good["finish_us"].get<double>() * 0.5;
  expect_invalid(bad, "finish");
  bad = good;
  bad["lower_bound"]["us"] = good["lower_bound"]["us"].get<double>() * 1.01;
  expect_invalid(bad, "bound");
  bad = good;
  bad["gap"] = 0.5;
  expect_invalid(bad, "gap");
  bad = good;
  bad["algorithm_bandwidth_GBps"] = 1000;
  expect_invalid(bad, "algorithm_bandwidth_GBps");
  bad = good;
  bad["size_bytes"] = 60000;
  expect_invalid(bad, "");
  bad = good;
  bad["chunks"]["destinations"][0].erase(0);
  expect_invalid(bad, "");
}

TEST_F(Commands, VerifyOfAFolderChecksTheReport) {
  succeed(solve_ring("--engine list"));
  auto report = parse_sealed_json(read_file(at("out/report.json")), "report.json");
  report["gap"] = 0;
  report["finish_us"] = report["lower_bound_us"];
  for (const auto& [text, complaint] :
       {std::pair{sealed_text(report), "report.json: finish_us"}, {format_json(report), "checksum"}}) {
    write_file(at("out/report.json"), text);
    const Outcome outcome = rondo({"verify", "out"});
    EXPECT_EQ(outcome.exit_code, 65);
    EXPECT_TRUE(contains(outcome.err, complaint)) << outcome.err;
  }
}

TEST_F(Commands, BoundShowsWhatSolveReports) {
  succeed(solve_ring("--engine list"));
  const std::string problem =
      "bound --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 --collective allgather --size 30KB";
  EXPECT_TRUE(contains(succeed(split(problem)), "lower bound"));
  const Json bounds = Json::parse(succeed(split(problem + " --json")));
  EXPECT_EQ(bounds["lower_bounds"][0]["us"], read_json(at("out/report.json"))["lower_bound_us"]);
}

TEST_F(Commands, SymmetryMakesFlowsSmallAndBoundsNoOther) {
  const std::string problem = "bound --topology star:chassis=3,gpus=4 --collective alltoall --size 1MB";
  EXPECT_TRUE(contains(succeed(split(problem)), "columns instead of"));
  EXPECT_FALSE(contains(succeed(split(problem + " --symmetry off")), "columns instead of"));
  const auto bound = [&](const std::string& more) {
    return Json::parse(succeed(split(problem + " --json" + more)))["lower_bounds"][0]["us"].get<double>();
  };
  EXPECT_NEAR(bound("") / bound(" --symmetry off"), 1, 1e-6);
}

TEST_F(Commands, SeveralRanksProveTheBoundOfADamagedFabricByColumns) {
  const std::string problem =
      " --topology star:chassis=2,gpus=4 --collective alltoall --size 64MB --degrade 0.2:0.5..0.9";
  EXPECT_TRUE(contains(succeed(split("bound --lp-solver columns" + problem), 2), "by columns"));
  succeed(split("solve --engine flow --lp-solver columns --gap 50% --output damaged" + problem), 2);
  const Json report = read_json(at("damaged/report.json"));
  EXPECT_LE(report["metrics"]["columns_gap"], 0.05);
  EXPECT_GE(report["metrics"]["realised_us"], report["metrics"]["rounded_us"]);
  succeed({"verify", "damaged"});
}

TEST_F(Commands, SchedulesByOrbitsVerify) {
  const std::string problem =
      "solve --topology star:chassis=3,gpus=4 --collective alltoall --size 1MB --engine flow --policy "
      "orbits "
      "--output copied";
  succeed(split(problem), 2);
  EXPECT_EQ(read_json(at("copied/report.json"))["metrics"]["automorphisms"], 3);
  succeed({"verify", "copied"});
  const Outcome whole = rondo(split(problem + " --symmetry off --force"));
  EXPECT_EQ(whole.exit_code, 69);
  EXPECT_TRUE(contains(whole.err, "automorphisms")) << whole.err;
}

TEST_F(Commands, InfoTellsWhatAFileIs) {
  succeed(solve_ring("--engine list"));
  succeed(split("topology generate ring:gpus=5 --output r.json"));
  EXPECT_TRUE(contains(succeed({"info", "out"}), "allgather of 30 KB"));
  EXPECT_TRUE(contains(succeed({"info", "out/schedule.h5"}), "sends"));
  EXPECT_TRUE(contains(succeed({"info", "r.json"}), "5 GPUs"));
}

TEST_F(Commands, SumsKeepTheirDemandAndFabric) {
  write_file(at("d.json"),
             R"({"format": "rondo-demand", "version": 2, "chunks": [
                 {"id": 0, "bytes": 10000, "sources": [1, 2, 0], "destinations": [0], "reduce": true},
                 {"id": 1, "bytes": 20000, "sources": [1, 2], "destinations": [2], "reduce": true}]})");
  succeed(split("solve --topology ring:gpus=3,message_us=0.5 --demand d.json --gap 100% --output out"));
  const Json problem = read_json(at("out/problem.json"));
  EXPECT_EQ(problem["demand"]["version"], 2);
  EXPECT_EQ(problem["demand"]["chunks"][0]["sources"].dump(), "[0,1,2]");
  EXPECT_EQ(problem["topology"]["version"], 2);
  EXPECT_TRUE(contains(succeed({"verify", "out"}), "valid: custom of 30 KB"));
  succeed(split("export out --format json --output s.json"));
  const Json schedule = read_json(at("s.json"));
  EXPECT_EQ(schedule["version"], 2);
  EXPECT_EQ(schedule["chunks"]["sources"].size(), schedule["chunks"]["origin"].size());
  EXPECT_TRUE(contains(succeed({"verify", "s.json"}), "valid: custom of 30 KB"));
}

TEST_F(Commands, ACustomDemandIsSolved) {
  write_file(at("d.json"),
             R"({"format": "rondo-demand", "version": 1, "chunks": [
                 {"id": 0, "bytes": 10000, "sources": [0], "destinations": [1, 2]},
                 {"id": 1, "bytes": 20000, "sources": [2], "destinations": [0]}]})");
  succeed(split("solve --topology ring:gpus=3 --demand d.json --gap 100% --output out"));
  EXPECT_EQ(read_json(at("out/problem.json"))["collective"], "custom");
  EXPECT_TRUE(contains(succeed({"verify", "out"}), "valid: custom of 30 KB"));
}

TEST_F(Commands, ASignalEndsTheSearchAndTheFolderIsLockedUntilThen) {
  // Latency and transmission mix: no schedule meets a gap of 0, so that only the limit or a signal ends it.
  const Words solve =
      split("solve --topology amd-1 --collective allgather --size 1MB --gap 0 --time-limit 50 --output out");
  Process search(solve, 1, folder_.path());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!fs::exists(at("out/lock")) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // A program of its own, whose start takes the search long enough to have a schedule.
  const Outcome second = Process(solve, 1, folder_.path()).wait();
  EXPECT_EQ(second.exit_code, 73) << second.err;
  EXPECT_TRUE(contains(second.err, "another run")) << second.err;

  search.signal(SIGINT);
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = search.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(read_json(at("out/report.json"))["limits_hit"], Json::array({"interrupted"}));
  EXPECT_FALSE(fs::exists(at("out/lock")));
  succeed({"verify", "out"});
}

TEST_F(Commands, AWorkLogHasPartsAndWhatRanksWouldSay) {
  succeed(solve_ring("--gap 0 --engine list --work-log log.json"));
  std::size_t parts = 0, told = 0;
  double cpu_s = 0;
  const Json log = read_json(at("log.json"));
  for (const Json& step : log["steps"]) {
    cpu_s += step["own_cpu_s"].get<double>();
    for (const Json& part : step["parts"]) {
      EXPECT_GE(part[0], 0);
      EXPECT_GE(part[1], 0);
      ++parts;
    }
    // What the parts make is gathered next.
    if (step["talk"] != "none") told += step["bytes"].get<std::size_t>();
  }
  EXPECT_GT(parts, 1U);
  EXPECT_GT(told, parts * sizeof(double));
  EXPECT_GT(cpu_s, 0);
  const Outcome two = rondo(solve_ring("--force --work-log log.json"), 2);
  EXPECT_EQ(two.exit_code, 64);
  EXPECT_TRUE(contains(two.err, "--work-log is of one rank, and there are 2")) << two.err;
}

}  // namespace
}  // namespace rondo::test::test_commands
