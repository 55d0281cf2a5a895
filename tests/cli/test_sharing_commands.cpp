#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.hpp"
#include "rondo/io/json_files.hpp"

/// Late GPUs, several tenants, several fabrics.
namespace rondo::test::test_sharing_commands {
namespace {

using Json = nlohmann::json;

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
      {"9:1", "GPU 9"}, {"1:1e30", "an hour"}, {"1:-5", "-5"}, {"1:5,0-2:7", "GPU 1 twice"},
      {"x:5", "'x'"},   {"3-2:5", "backwards"}};
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

TEST_F(Late, GpusBeyondTheEpochsAskedForAreNamed) {
  for (const std::string engine : {"lp --collective alltoall", "milp --collective broadcast"}) {
    const Outcome outcome =
        run(split("solve --output out --topology ring:gpus=3 --size 3MB --chunks 1 --epochs 4 "
                  "--epoch 10 --ready 0:40 --engine " +
                  engine),
            1, at(""));
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "data of GPU 0 are ready at 40 us, when the 4 epochs of 10 us"))
        << outcome.err;
  }
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
  // What a kill leaves in the folder of a run that has no schedule yet.
  for (const char* made : {"out/report.json", "out/schedule.h5"}) std::filesystem::remove(at(made));
  succeed({"resume", "out"});
  EXPECT_EQ(read_json(at("out/report.json"))["schedule_digest"], report["schedule_digest"]);
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

TEST_F(Tenants, AndEarlyDeliveryAreRefusedByEnginesForOneCollective) {
  const std::string problem = "solve --topology ring:gpus=4 --output out --engine rounds ";
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"--tenant a:collective=allgather,size=1MB --tenant b:collective=alltoall,size=1MB --objective "
            "weighted",
            "engine rounds is for one collective"},
           {"--collective allgather --size 1MB --objective early",
            "engine rounds does not heed --objective early; use --engine milp"}}) {
    const Outcome outcome = run(split(problem + arguments), 1, at(""));
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome.err;
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
  const Json undisturbed = read_json(at("out/report.json"));
  for (const char* made : {"out/report.json", "out/schedule.h5"}) std::filesystem::remove(at(made));
  succeed({"resume", "out"});
  EXPECT_EQ(read_json(at("out/report.json"))["schedule_digest"], undisturbed["schedule_digest"]);
  const Json& scenarios = undisturbed["scenarios"];
  EXPECT_LT(scenarios["finish_us"].get<double>(), 0.9 * scenarios["own_us"].get<double>());
  // What a report says of a fabric is derived again.
  Json report = parse_sealed_json(read_file(at("out/report.json")), "report.json");
  for (const char* figure : {"/scenarios/each/1/finish_us", "/scenarios/each/1/lower_bound/us",
                             "/scenarios/finish_us", "/scenarios/lower_bound_us"}) {
    Json changed = report;
    Json& value = changed[Json::json_pointer(figure)];
    value = 0.9 * value.get<double>();
    write_file(at("out/report.json"), sealed_text(changed));
    EXPECT_EQ(run({"verify", "out"}, 1, at("")).exit_code, 65) << figure;
  }
  report.erase("scenarios");
  write_file(at("out/report.json"), sealed_text(report));
  EXPECT_EQ(run({"verify", "out"}, 1, at("")).exit_code, 65);
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
}  // namespace rondo::test::test_sharing_commands
