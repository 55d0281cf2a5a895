#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>

#include "program.hpp"

/// What an operator asks of a fabric: how it compares, and what it is made of.
namespace rondo::test::test_fabric_commands {
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

using Fabrics = ProgramTest;

TEST_F(Fabrics, AreListedShownGeneratedAndChecked) {
  const std::string list = succeed({"topology", "list"});
  for (const char* name :
       {"ndv2-2", "dgx1", "torus", "dragonfly", "bandwidth_GBps", "(a whole number, 2 or more)"})
    EXPECT_TRUE(contains(list, name)) << name;
  EXPECT_TRUE(contains(succeed({"topology", "show", "ndv2-2"}), "16 GPUs"));

  succeed(
      split("topology generate torus:dims=3x3,bandwidth_GBps=20 --degrade 0.5:0.5 --seed 3 --output t.json"));
  EXPECT_TRUE(contains(succeed({"topology", "check", "t.json"}), "valid: "));
  const Json topology = read_json(at("t.json"));
  std::multiset<double> bandwidths;
  for (const Json& link : topology["links"]) bandwidths.insert(link["bandwidth_GBps"].get<double>());
  EXPECT_EQ(bandwidths.count(10), bandwidths.size() / 2);
  EXPECT_EQ(bandwidths.count(20), bandwidths.size() / 2);
}

TEST_F(Fabrics, HaveMessageCostsAndSwitchesThatAdd) {
  succeed(
      split("topology generate rails:gpus=2,message_us=0.25,inter_message_us=1.5,reduce=true --degrade 1:0.5 "
            "--output t.json"));
  const Json topology = read_json(at("t.json"));
  EXPECT_EQ(topology["version"], 2);
  std::multiset<double> costs;
  for (const Json& link : topology["links"]) costs.insert(link["message_us"].get<double>());
  EXPECT_EQ(costs, (std::multiset<double>{0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25,  //
                                          1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5}));
  EXPECT_EQ(topology["links"][0]["bandwidth_GBps"], 150);
  EXPECT_EQ(topology["nodes"][4]["reduce"], true);
  EXPECT_TRUE(contains(succeed({"topology", "check", "t.json"}), "valid: "));
  EXPECT_TRUE(contains(succeed({"topology", "show", "t.json"}), "a message"));
  EXPECT_FALSE(contains(succeed({"topology", "show", "ndv2-2"}), "a message"));
  EXPECT_TRUE(contains(succeed({"topology", "list"}), "inter_message_us"));
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

}  // namespace
}  // namespace rondo::test::test_fabric_commands
