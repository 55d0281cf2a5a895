#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "program.hpp"

/// What an operator asks of a fabric: how it compares, and what it is made of.
namespace rondo::test {
namespace {

using Json = nlohmann::json;

const std::string kRing = "compare --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 ";

const Json& result_of(const Json& row, const std::string& engine) {
  for (const Json& result : row["results"]) {
    if (result["engine"] == engine) return result;
  }
  throw std::runtime_error("no result of " + engine);
}

using Compare = ProgramTest;

TEST_F(Compare, GivesWhatSolveGives) {
  const std::string out = succeed(split(
      kRing + "--collective allgather,alltoall --size 3KB,30KB --json c.json --html c.html --svg c.svg"));
  const Json rows = read_json(at("c.json"))["rows"];
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[1]["size_bytes"], 30000);
  for (const char* engine : {"auto", "ring", "direct"}) {
    succeed(split(
        "solve --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 --collective allgather --size 30KB "
        "--force --output out --engine " +
        std::string(engine)));
    const Json report = read_json(at("out/report.json"));
    const Json& result = result_of(rows[1], engine);
    EXPECT_EQ(result["finish_us"], report["finish_us"]) << engine;
    EXPECT_EQ(result["made_by"], report["engine"]);
    EXPECT_EQ(rows[1]["lower_bound_us"], report["lower_bound_us"]);
  }
  double best = 1e9;
  for (const char* engine : {"ring", "direct", "recursive", "bruck", "hierarchical"}) {
    if (result_of(rows[1], engine).contains("finish_us"))
      best = std::min(best, result_of(rows[1], engine)["finish_us"].get<double>());
  }
  EXPECT_DOUBLE_EQ(rows[1]["gain"].get<double>(),
                   best / result_of(rows[1], "auto")["finish_us"].get<double>());
  // AllToAll is not for rings, and the table says so.
  EXPECT_TRUE(result_of(rows[3], "ring").contains("refused"));
  EXPECT_TRUE(contains(out, "- alltoall: engine ring"));
  EXPECT_FALSE(contains(out, "--engine"));
  EXPECT_TRUE(contains(out, "of 4 rows"));
  EXPECT_TRUE(contains(read_file(at("c.html")), "alltoall: finish time against size"));
  EXPECT_TRUE(contains(read_file(at("c.html")), "of 4 rows"));
  EXPECT_TRUE(read_file(at("c.svg")).starts_with("<svg"));
}

TEST_F(Compare, GoesOnWithWhatItsFileHolds) {
  const std::string first = succeed(split(kRing + "--collective allgather --size 3KB --json c.json"));
  const std::string kept = read_file(at("c.json"));
  EXPECT_EQ(succeed(split(kRing + "--collective allgather --size 3KB --json c.json")), first);
  EXPECT_EQ(read_file(at("c.json")), kept);  // nothing was computed, nothing was written
  succeed(split(kRing + "--collective broadcast,allgather --size 3KB --json c.json"), 2);
  const Json rows = read_json(at("c.json"))["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], Json::parse(kept)["rows"][0]);
  EXPECT_TRUE(result_of(rows[1], "tree").contains("finish_us"));
}

TEST_F(Compare, RefusesTheFileOfAnotherFabricOrADamagedOne) {
  succeed(split(kRing + "--collective allgather --size 3KB --json c.json"));
  const std::string kept = read_file(at("c.json"));
  const Outcome other = rondo(split("compare --topology ring:gpus=5 --size 3KB --json c.json"));
  EXPECT_EQ(other.exit_code, 65) << other.err;
  EXPECT_TRUE(contains(other.err, "topology")) << other.err;
  EXPECT_TRUE(contains(other.err, "--force")) << other.err;
  const Outcome options = rondo(split(kRing + "--size 3KB --json c.json --seed 1"));
  EXPECT_EQ(options.exit_code, 65) << options.err;
  EXPECT_EQ(read_file(at("c.json")), kept);
  std::string damaged = kept;
  damaged[damaged.find("finish_us") + 12] ^= 4;
  write_file(at("c.json"), damaged);
  const Outcome broken = rondo(split(kRing + "--collective allgather --size 3KB --json c.json"));
  EXPECT_EQ(broken.exit_code, 65) << broken.err;
  succeed(split(kRing + "--collective allgather --size 3KB --json c.json --force"));
  EXPECT_EQ(read_file(at("c.json")), kept);
}

TEST_F(Compare, LosesNothingThatWasFinishedWhenItIsKilled) {
  const auto arguments = split(
      "compare --topology torus:dims=4x4 --collective alltoall,allgather --size 1MB,4MB,16MB --json c.json");
  Json before;
  {
    Process process(arguments, 1, at(""));
    for (int wait = 0;
         wait < 600 && !(std::filesystem::exists(at("c.json")) && read_json(at("c.json"))["rows"].size() > 1);
         ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    process.signal(SIGKILL);
    process.wait();
    before = read_json(at("c.json"));
  }
  ASSERT_GT(before["rows"].size(), 1U);
  succeed(split("compare --topology torus:dims=4x4 --collective alltoall --size 1MB --json c.json"));
  EXPECT_EQ(read_json(at("c.json"))["rows"][0], before["rows"][0]);
}

using Profile = ProgramTest;

/// What this machine's times tell is its own affair: a topology, or which figure they do not tell.
TEST_F(Profile, WritesATopologyOrSaysWhatTheTimesDoNotTell) {
  const Outcome two =
      rondo(split("profile --passes 3 --max-bytes 256KB --output here.json --figures here.tsv"), 2);
  if (two.exit_code == 0) {
    EXPECT_TRUE(contains(two.out, "between ranks: 2 links")) << two.out;
    EXPECT_TRUE(contains(succeed(split("topology check here.json")), "2 GPUs"));
    EXPECT_TRUE(read_file(at("here.tsv")).starts_with("from\tto\tlatency_us\terror"));
  } else {
    EXPECT_EQ(two.exit_code, 65) << two.err;
    EXPECT_TRUE(contains(two.err, "more --passes")) << two.err;
  }
  const Outcome alone = rondo(split("profile --output here.json"));
  EXPECT_EQ(alone.exit_code, 64) << alone.err;
  EXPECT_TRUE(contains(alone.err, "mpirun -n 2")) << alone.err;
}

using Machines = ProgramTest;

TEST_F(Machines, AreComposedDrawnAndSolved) {
  const std::string out =
      succeed(split("topology compose --node dgx1v --nodes 2 --network rails --output two.json"));
  EXPECT_TRUE(contains(out, "16 GPUs")) << out;
  const std::string shown = succeed(split("topology show two.json --svg two.svg"));
  EXPECT_TRUE(contains(shown, "WP-08437-002")) << shown;
  EXPECT_TRUE(contains(read_file(at("two.svg")), "c1g7"));
  EXPECT_TRUE(contains(read_file(at("two.svg")), "GB/s"));
  EXPECT_TRUE(contains(succeed(split("topology check two.json")), "valid"));
  succeed(split(
      "solve --topology two.json --collective allgather --size 1MB --engine list --gap 100% --output out"));
  succeed({"verify", "out"});
  EXPECT_TRUE(contains(succeed(split("topology list")), "gb200-nvl72"));
}

using Repairs = ProgramTest;

TEST_F(Repairs, OfARunAreFilesThatVerify) {
  succeed(
      split("solve --topology rails:boxes=2,gpus=4,rails=2 --collective allgather --size 8MB --engine list "
            "--improve-work 0 --gap 100% --output run"));
  const std::string said =
      succeed(split("repair run --at 20 --without c0g0:rail0 --output rest.json --whole whole.h5"));
  EXPECT_TRUE(contains(said, "deliveries lost")) << said;
  EXPECT_TRUE(contains(said, "rest:  finish")) << said;
  EXPECT_TRUE(contains(succeed({"verify", "rest.json"}), "custom"));
  EXPECT_TRUE(contains(succeed({"verify", "whole.h5"}), "allgather of 8 MB"));
  EXPECT_FALSE(read_json(at("rest.json"))["lower_bound"].is_null());

  const std::vector<std::tuple<std::string, int, std::vector<std::string>>> refused = {
      {"--at 1e6 --without c0g0:rail0", 65, {"1000000 us", "before its end"}},
      {"--at -1 --without c0g0:rail0", 64, {"--at", "-1"}},
      {"--at 20", 64, {"nothing fails"}},
      {"--at 20 --without c0g0", 64, {"--without", "'c0g0'"}},
      {"--at 20 --without c0g0:rail7", 64, {"--without", "rail7"}},
      {"--at 20 --without c0g0:c1g0", 64, {"no link joins c0g0:c1g0"}},
      {"--at 20 --without c0g0:rail0 --degrade c0g0:rail0:0.5", 64, {"fail twice"}},
      {"--at 20 --degrade c0g0:rail0:1.5", 64, {"--degrade", "1.5"}},
      {"--at 20 --without c0g0:rail0,c0g0:c0nvswitch", 65, {"GPU 0", "no path"}}};
  for (const auto& [options, exit_code, message] : refused) {
    const Outcome outcome = run(split("repair run " + options), 1, at(""));
    EXPECT_EQ(outcome.exit_code, exit_code) << options << outcome.err;
    for (const std::string& part : message) EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  }
}

TEST_F(Repairs, OfAllSingleFailuresGoOnAndAreTheSameOnAnyNumberOfRanks) {
  succeed(
      split("solve --topology rails:boxes=2,gpus=2,rails=1 --collective allgather --size 8MB --engine list "
            "--improve-work 0 --gap 100% --output run"));
  const auto rows = [&] {
    auto all = read_json(at("all/failures.json"));
    for (auto& row : all) row.erase("seconds");
    return all;
  };
  const std::string said = succeed(split("repair run --at 20 --all-single-failures --output all"), 2);
  EXPECT_TRUE(contains(said, "8 failures, 0 without a repair")) << said;
  const auto first = rows();
  ASSERT_EQ(first.size(), 8U);
  const std::string stem = first[3]["nodes"][0].dump() + "-" + first[3]["nodes"][1].dump();
  succeed({"verify", "all/" + stem + ".h5"});
  const std::string kept = read_file(at("all/failures.json"));
  std::filesystem::remove(at("all/" + stem + ".json"));
  std::filesystem::remove(at("all/failures.json"));
  succeed(split("repair run --at 20 --all-single-failures --output all"));
  EXPECT_EQ(rows(), first);
  const auto again = read_json(at("all/failures.json"));
  for (std::size_t i = 0; i < again.size(); ++i) {
    // Only what was missing was made again.
    if (i != 3) {
      EXPECT_EQ(again[i], nlohmann::json::parse(kept)[i]);
    }
  }
  const Outcome other = run(split("repair run --at 21 --all-single-failures --output all"), 1, at(""));
  EXPECT_EQ(other.exit_code, 65) << other.err;
  EXPECT_TRUE(contains(other.err, "another schedule or time")) << other.err;
}

using Late = ProgramTest;

TEST_F(Late, GpusAreWaitedForAndBounded) {
  const std::string problem =
      "--topology torus:dims=2x3 --size 6MB --gap 5% --improve-work 1e5 --force --output out ";
  succeed(split("solve --collective allgather --ready 1:500,3-4:20 " + problem));
  const auto late = read_json(at("out/report.json"));
  EXPECT_GT(late["lower_bound_us"], 500);
  EXPECT_LE(late["gap"], 0.05);
  succeed({"verify", "out"});
  write_file(at("late.txt"), "1:500  # the late one\n3-4:20\n");
  succeed(split("solve --collective allgather --ready late.txt " + problem));
  EXPECT_EQ(read_json(at("out/report.json"))["schedule_digest"], late["schedule_digest"]);
  // Nobody is late: the named collective.
  succeed(split("solve --collective allgather --ready 1:0 " + problem));
  EXPECT_EQ(read_json(at("out/report.json"))["collective"], "allgather");

  const std::vector<std::pair<std::string, std::string>> refused = {
      {"9:1", "GPU 9"}, {"1:-5", "-5"}, {"1:5,0-2:7", "GPU 1 twice"}, {"x:5", "'x'"}, {"3-2:5", "backwards"}};
  for (const auto& [ready, message] : refused) {
    const Outcome outcome =
        run(split("bound --collective allgather --topology torus:dims=2x3 --size 6MB --ready " + ready), 1,
            at(""));
    EXPECT_EQ(outcome.exit_code, 64) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome.err;
  }
}

TEST_F(Late, SumsAreWaitedForAndBounded) {
  const std::string problem = " --topology torus:dims=2x3 --size 6MB --ready 1:500 ";
  for (const std::string sum : {"allreduce", "reduce_scatter"}) {
    succeed(split("solve --output out --force --improve-work 1e4 --collective " + sum + problem));
    succeed({"verify", "out"});
    EXPECT_GT(read_json(at("out/report.json"))["lower_bound_us"], 500);
    const Outcome outcome =
        run(split("solve --output out --force --engine rounds --collective " + sum + problem), 1, at(""));
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "ready")) << outcome.err;
  }
  succeed(split("bound --collective allreduce" + problem));
}

using Tenants = ProgramTest;

TEST_F(Tenants, AreReportedOneByOne) {
  const std::string problem =
      "solve --topology ring:gpus=4 --improve-work 1e4 --output out --force --objective weighted "
      "--tenant train:collective=allgather,size=8MB,group=0-1,3 --tenant "
      "serve:collective=alltoall,size=1MB,priority=9,start=2.5 ";
  succeed(split(problem));
  succeed({"verify", "out"});
  const auto report = read_json(at("out/report.json"));
  const auto& tenants = report["tenants"];
  ASSERT_EQ(tenants["each"].size(), 2U);
  EXPECT_EQ(tenants["each"][1]["name"], "serve");
  EXPECT_EQ(tenants["each"][1]["start_us"], 2.5);
  EXPECT_GE(tenants["weighted_us"], tenants["weighted_bound_us"]);
  EXPECT_TRUE(report.contains("peak_relay_bytes"));
  // A report that says otherwise is refused.
  for (const std::string key : {"weighted_us", "weighted_bound_us", "largest_slowdown"}) {
    const auto problem_text = read_file(at("out/report.json"));
    auto changed = report;
    changed["tenants"][key] = 1.0;
    changed.erase("checksum");
    write_file(at("out/report.json"), changed.dump());
    EXPECT_EQ(run({"verify", "out"}, 1, at("")).exit_code, 65) << key;
    write_file(at("out/report.json"), problem_text);
  }
}

TEST_F(Tenants, ComeFromFilesToo) {
  write_file(at("a.json"), R"({"format": "rondo-demand", "version": 1, "chunks": [
    {"id": 0, "bytes": 1000000, "sources": [0], "destinations": [1, 2]}]})");
  write_file(at("b.json"), R"({"format": "rondo-demand", "version": 1, "chunks": [
    {"id": 0, "bytes": 1000000, "sources": [1], "destinations": [2], "tenant": 5, "priority": 3}]})");
  succeed(
      split("solve --topology ring:gpus=4 --improve-work 0 --output out --demand a.json --demand b.json"));
  const auto tenants = read_json(at("out/report.json"))["tenants"];
  EXPECT_EQ(tenants["each"][0]["name"], "a");
  EXPECT_EQ(tenants["each"][1]["name"], "b");
  EXPECT_EQ(tenants["each"][1]["priority"], 3);
}

TEST_F(Tenants, ThatAreSaidWrongAreRefused) {
  const std::string good = "--tenant a:collective=allgather,size=1MB ";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {good + "--tenant a:collective=alltoall,size=1MB", "two tenants are named 'a'"},
      {good + "--tenant b:collective=alltoall,size=1MB,priority=0", "priority is 0"},
      {good + "--tenant b:collective=alltoall,size=1MB,priority=-2", "priority is -2"},
      {good + "--tenant b:collective=alltoall,size=1MB,start=-1", "start is -1"},
      {good + "--tenant b:collective=alltoall", "size is missing"},
      {good + "--tenant b:collective=alltoall,size=1MB,groop=0-1", "'groop' is unknown"},
      {good + "--tenant b:collective=alltoall,size=1MB,root=1", "alltoall has no root"},
      {good + "--tenant b:collective=alltoall,size=1MB,group=0-9", "no GPU 9"},
      {good + "--tenant collective=alltoall,size=1MB", "begins with a name"},
      {good + "--collective allgather", "--collective is 'allgather'"},
      {good + "--ready 1:5", "--ready is '1:5'"},
      {good + "--objective weighted", "--objective is 'weighted'"}};
  for (const auto& [arguments, message] : refused) {
    const Outcome outcome = run(split("solve --topology ring:gpus=4 --output out " + arguments), 1, at(""));
    EXPECT_EQ(outcome.exit_code, 64) << arguments << outcome.err;
    EXPECT_TRUE(contains(outcome.err, message)) << arguments << outcome.err;
  }
}

TEST_F(Tenants, NeedMemoryToBeRelayed) {
  const std::string problem =
      "solve --topology ring:gpus=4 --collective alltoall --group 0,2 --size 8MB "
      "--chunks 4 --force --output out --relay-memory ";
  succeed(split(problem + "1MB"));
  succeed({"verify", "out"});
  EXPECT_LE(read_json(at("out/report.json"))["peak_relay_bytes"], 1e6);
  const Outcome none = run(split(problem + "0"), 1, at(""));
  EXPECT_EQ(none.exit_code, 69) << none.err;
  EXPECT_TRUE(contains(none.err, "less than a chunk of 1000000 bytes")) << none.err;
}

TEST_F(Late, OrdersAreTimedWithLateData) {
  succeed(
      split("solve --topology ring:gpus=4 --collective allgather --size 4MB --improve-work 0 --output out"));
  succeed(split("replay out --ready 1:500 --output late.json"));
  const Json late = read_json(at("late.json"));
  EXPECT_GT(late["finish_us"], 500);
  EXPECT_GT(late["lower_bound"]["us"], 500);
  succeed({"verify", "late.json"});
  const Outcome twice = run(split("replay late.json --ready 1:500"), 1, at(""));
  EXPECT_EQ(twice.exit_code, 64) << twice.err;
  EXPECT_TRUE(contains(twice.err, "--ready is '1:500', but the schedule's own demand")) << twice.err;
}

class Scenarios : public ProgramTest {
 protected:
  void write(const std::string& entries, const std::string& more = "") {
    write_file(at("s.json"), R"({"format": "rondo-scenarios", "version": 1, )" + more + R"("scenarios": [)" +
                                 entries + "]}");
  }
  static inline const std::string kProblem =
      "solve --topology ring:gpus=4,bandwidth_GBps=10,latency_us=1 --collective allgather --size 4MB "
      "--force --output out --scenarios s.json ";
  static inline const std::string kFast = kProblem + "--engine list --improve-work 1e4 ";
};

TEST_F(Scenarios, GetTheScheduleThatIsBestOverAll) {
  for (const std::string objective : {"worst", "mean"}) {
    write(R"({"name": "slow", "scale-bandwidth": "0:1:0.2"}, {"name": "cut", "without": "2:3"})",
          R"("objective": ")" + objective + R"(", )");
    succeed(split(kFast));
    succeed({"verify", "out"});
    const Json scenarios = read_json(at("out/report.json"))["scenarios"];
    ASSERT_EQ(scenarios["each"].size(), 3U);
    double worst_us = 0;
    double sum_us = 0;
    for (const auto& [name, change] : std::map<std::string, std::string>{
             {"own", ""}, {"slow", " --scale-bandwidth 0:1:0.2"}, {"cut", " --without 2:3"}}) {
      succeed(split("replay out --output there.json" + change));
      const double us = read_json(at("there.json"))["finish_us"];
      for (const Json& each : scenarios["each"]) {
        if (each["name"] != name) continue;
        EXPECT_DOUBLE_EQ(each["finish_us"].get<double>(), us) << name;
        EXPECT_LE(each["lower_bound"]["us"].get<double>(), us * (1 + 1e-9)) << name;
      }
      worst_us = std::max(worst_us, us);
      sum_us += us;
    }
    EXPECT_EQ(scenarios["objective"], objective);
    EXPECT_NEAR(scenarios["finish_us"].get<double>(), objective == "worst" ? worst_us : sum_us / 3,
                1e-9 * sum_us);
    EXPECT_LE(scenarios["lower_bound_us"], scenarios["finish_us"]);
    // A ring's own schedule goes over the link that is lost.
    EXPECT_TRUE(scenarios["own_us"].is_null());
  }
  // Made for the slow link the schedule is better there than the one of the ring alone.
  write(R"({"name": "slow", "scale-bandwidth": "0:1:0.2"})");
  succeed(split(kFast));
  const Json scenarios = read_json(at("out/report.json"))["scenarios"];
  EXPECT_LT(scenarios["finish_us"].get<double>(), 0.9 * scenarios["own_us"].get<double>());
}

TEST_F(Scenarios, ThatAreSaidWrongAreRefused) {
  const std::string good = R"({"name": "slow", "degrade": "0.5:0.5"})";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"", "scenarios has no entry"},
      {"{}", "scenarios[0] has no name"},
      {R"({"name": "slow"})", "scenario 'slow' changes nothing"},
      {R"({"name": "own", "degrade": "0.5:0.5"})", "is named 'own'"},
      {good + "," + good, "two scenarios are named 'slow'"},
      {R"({"name": "slow", "degraed": "0.5:0.5"})", "the key 'degraed'"},
      {R"({"name": "slow", "degrade": "0.5"})", "scenario 'slow': --degrade is '0.5'"},
      {R"({"name": "slow", "degrade": true})", "degrade is true"},
      {R"({"name": "slow", "degrade-seed": 2})", "no link is degraded"},
      {R"({"name": "slow", "topology": "ring:gpus=5"})", "scenario 'slow': "},
      {R"({"name": "slow", "without": "0:1,1:2"})", "scenario 'slow': "}};
  for (const auto& [entries, message] : refused) {
    write(entries);
    const Outcome outcome = run(split(kProblem), 1, at(""));
    EXPECT_EQ(outcome.exit_code, 65) << entries << outcome.err;
    EXPECT_TRUE(contains(outcome.err, message)) << entries << outcome.err;
  }
  write(good, R"("objective": "best", )");
  EXPECT_TRUE(contains(run(split(kProblem), 1, at("")).err, "objective is \"best\""));
  write(good);
  const Outcome rounds = run(split(kProblem + "--engine rounds"), 1, at(""));
  EXPECT_EQ(rounds.exit_code, 69) << rounds.err;
  EXPECT_TRUE(contains(rounds.err, "--scenarios")) << rounds.err;
}

TEST_F(Late, LinksAreScaled) {
  succeed(split(
      "topology generate --topology ring:gpus=3,bandwidth_GBps=10,latency_us=1 --scale-latency all:2,0:1:5 "
      "--scale-bandwidth 2:0.5 --output scaled.json"));
  for (const auto& link : read_json(at("scaled.json"))["links"]) {
    const bool is_named = link["src"].get<int>() + link["dst"].get<int>() == 1;
    EXPECT_EQ(link["latency_us"], is_named ? 10 : 2);
    EXPECT_EQ(link["bandwidth_GBps"], link["src"] == 2 || link["dst"] == 2 ? 5 : 10);
  }
  for (const std::string wrong : {"0:0", "9:2", "2", "0:0:2", "all:x"}) {
    const Outcome outcome =
        run(split("topology show --topology ring:gpus=3 --scale-latency " + wrong), 1, at(""));
    EXPECT_EQ(outcome.exit_code, 64) << wrong << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "scale-latency") || contains(outcome.err, "no link joins"))
        << outcome.err;
  }
}

}  // namespace
}  // namespace rondo::test
