#include <gtest/gtest.h>

#include "program.hpp"

/// rondo export --format msccl-xml, rondo check-xml and rondo execute.
namespace rondo::test::test_xml_commands {
namespace {

class XmlCommands : public ProgramTest {
 protected:
  std::string succeed(const std::string& arguments, int ranks = 1) const {
    return ProgramTest::succeed(split(arguments), ranks);
  }
  std::string fail(int exit_code, const std::string& arguments, int ranks = 1) const {
    const Outcome outcome = rondo(split(arguments), ranks);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << ": " << outcome.err;
    return outcome.err;
  }
  void solve(const std::string& fabric, const std::string& collective) const {
    succeed("solve --topology " + fabric + " --collective " + collective +
            " --size 1MB --chunks 2 --engine list --improve-work 0 --output run");
  }
};

TEST_F(XmlCommands, WhatIsExportedIsAcceptedAndDamageIsNamed) {
  solve("dgx1", "allgather");
  for (const std::string choice :
       {"--placement in-place --executor msccl", "--placement out-of-place --executor msccl-executor-nccl"}) {
    succeed("export run --format msccl-xml --output a.xml --instances 2 " + choice);
    const std::string executor = choice.substr(choice.find("--executor"));
    EXPECT_TRUE(contains(succeed("check-xml a.xml " + executor), "valid: allgather"));
  }
  std::string text = read_file(at("a.xml"));
  for (const char* attribute : {" minBytes=", " maxBytes=", " inplace=", " outofplace="}) {
    EXPECT_TRUE(contains(text, attribute));
  }

  const std::string cnt = "cnt=\"";
  text[text.find(cnt) + cnt.size()] = '9';
  write_file(at("b.xml"), text);
  for (const char* command : {"check-xml b.xml", "execute b.xml"}) {
    const std::string message = fail(65, command, 2);
    EXPECT_TRUE(contains(message, "b.xml: ")) << message;
    EXPECT_TRUE(contains(message, "gpu 0 tb 0 step 0")) << message;
  }
  write_file(at("c.xml"), text.substr(0, text.size() / 2));
  EXPECT_TRUE(contains(fail(65, "check-xml c.xml"), "not well-formed"));
  fail(66, "check-xml nowhere.xml");
  fail(64, "check-xml a.xml --fifo-depth 0");
}

TEST_F(XmlCommands, TheFileIsTheSameOnAnyNumberOfRanksAndFromJson) {
  solve("ring:gpus=4", "alltoall");
  succeed("export run --format msccl-xml --output one.xml");
  succeed("export run --format msccl-xml --output two.xml", 2);
  succeed("export run --format json --output run.json");
  succeed("export run.json --format msccl-xml --output json.xml");
  EXPECT_EQ(read_file(at("one.xml")), read_file(at("two.xml")));
  EXPECT_EQ(read_file(at("one.xml")), read_file(at("json.xml")));
  EXPECT_TRUE(contains(succeed("check-xml two.xml"), "alltoall out of place on 4 GPUs"));
}

TEST_F(XmlCommands, CapsAreRefusedAndMetByOptions) {
  solve("star:chassis=2,intra=ndv2", "alltoall");
  const std::string message =
      fail(69, "export run --format msccl-xml --output a.xml --executor msccl-executor-nccl --instances 40");
  EXPECT_TRUE(contains(message, "msccl-executor-nccl takes at most")) << message;
  EXPECT_FALSE(std::filesystem::exists(at("a.xml")));
  succeed("export run --format msccl-xml --output a.xml --max-steps 20");
  EXPECT_TRUE(contains(succeed("check-xml a.xml"), "valid"));
  fail(64, "export run --format msccl-xml --output a.xml --placement in-place");
}

TEST_F(XmlCommands, SumsAreExportedCheckedAndExecuted) {
  for (const std::string collective : {"allreduce", "reduce_scatter", "reduce"}) {
    succeed("solve --topology ring:gpus=4 --collective " + collective +
            " --size 1MB --chunks 4 --engine list --improve-work 0 --output " + collective +
            (collective == "reduce" ? " --root 2" : ""));
    EXPECT_TRUE(contains(succeed("execute " + collective + " --type double", 2), "sum of double, within"));
    for (const std::string placement : {"in-place", "out-of-place"}) {
      if (placement == "in-place" && collective == "reduce") continue;
      succeed("export " + collective + " --format msccl-xml --output a.xml --redop max --placement " +
              placement);
      EXPECT_TRUE(contains(read_file(at("a.xml")), "redop=\"max\""));
      EXPECT_TRUE(contains(succeed("check-xml a.xml"), "valid: " + collective));
      EXPECT_TRUE(contains(succeed("execute a.xml", 3), "max of int64, exactly"));
    }
    EXPECT_TRUE(contains(succeed("execute a.xml --op sum --type float"), "sum of float, within"));
  }
  for (const std::string format : {"svg", "html", "trace"})
    succeed("export allreduce --format " + format + " --output picture");
  fail(64, "export allreduce --format msccl-xml --output a.xml --redop avg");
  fail(64, "execute allreduce --type int8");
  solve("ring:gpus=4", "allgather");
  EXPECT_TRUE(contains(fail(64, "execute run --type double"), "allgather combines nothing"));
}

TEST_F(XmlCommands, KnownAlgorithmsAreExportedCheckedAndExecuted) {
  const std::vector<std::pair<std::string, std::string>> all{
      {"ring", "star:chassis=4,gpus=1"}, {"tree", "full:gpus=5"},  {"direct", "dgx1"},
      {"recursive", "full:gpus=4"},      {"bruck", "ring:gpus=5"}, {"hierarchical", "star:chassis=2,gpus=2"},
      {"exchange", "mesh:dims=2x3"}};
  for (const auto& [engine, fabric] : all) {
    SCOPED_TRACE(engine);
    std::string solve = "solve --topology " + fabric;
    solve += " --collective allreduce --size 64KB --engine " + engine + " --force --output run";
    succeed(solve);
    EXPECT_TRUE(contains(succeed("execute run"), "sum of int64, exactly"));
    succeed("export run --format msccl-xml --output a.xml");
    EXPECT_TRUE(contains(succeed("check-xml a.xml"), "valid: allreduce"));
    EXPECT_TRUE(contains(succeed("execute a.xml", 2), "sum of int64, exactly"));
  }
}

TEST_F(XmlCommands, CustomProgramsAreHeldAgainstTheirDemand) {
  write_file(at("demand.json"),
             R"({"format": "rondo-demand", "version": 1, "chunks": [
                 {"id": 0, "bytes": 3000, "sources": [0], "destinations": [1, 2]},
                 {"id": 1, "bytes": 6000, "sources": [2], "destinations": [0]}]})");
  succeed("solve --topology ring:gpus=4 --demand demand.json --engine list --chunks 2 --output run");
  succeed("export run --format msccl-xml --output a.xml --instances 2");
  EXPECT_TRUE(contains(succeed("check-xml a.xml"), "--demand tells"));
  EXPECT_FALSE(contains(succeed("check-xml a.xml --demand demand.json"), "--demand tells"));
  fail(69, "export run --format msccl-xml --output a.xml --executor msccl-executor-nccl");
}

TEST_F(XmlCommands, PlansOfMscclppAreCheckedAndExecuted) {
  for (const std::string collective : {"allgather", "allreduce"}) {
    succeed("solve --topology rails:boxes=2,gpus=2 --collective " + collective +
            " --size 1MB --chunks 4 --engine ring --output run --force");
    succeed("export run --format mscclpp --output plan.json --gpus-per-node 2");
    EXPECT_TRUE(contains(succeed("check-plan plan.json"), "valid: " + collective));
    EXPECT_TRUE(contains(succeed("execute plan.json --bytes 100KB", 2), "of the outputs is right"));
  }
}

TEST_F(XmlCommands, DamagedPlansAreRefusedWithTheirPlace) {
  solve("ring:gpus=4", "allgather");
  succeed("export run --format mscclpp --output plan.json --min-bytes 1KB --max-bytes 1MB");
  std::string text = read_file(at("plan.json"));
  EXPECT_TRUE(contains(fail(64, "execute plan.json --bytes 16MB"), "the plan is for 1000 to 1000000"));
  const auto damaged = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    write_file(at("b.json"), other);
    return fail(65, "check-plan b.json");
  };
  EXPECT_TRUE(contains(damaged("\"put\"", "\"throw\""), "known are: nop, barrier, put"));
  EXPECT_TRUE(contains(damaged("\"memory\"", "\"radio\""), "known channel types are memory, port, switch"));
  EXPECT_TRUE(contains(damaged("\"signal\"", "\"rlxsignal\""), "b.json: "));
  EXPECT_TRUE(contains(damaged("\"wait\"", "\"nop\""), "is signalled"));
  write_file(at("b.json"), text.substr(0, text.size() / 2));
  fail(65, "check-plan b.json");
  fail(66, "check-plan nowhere.json");
  fail(64, "check-plan plan.json --caps some");
  fail(64, "export run --format mscclpp --output c.json --protocol LL");
  fail(64, "export run --format msccl-xml --output c.xml --gpus-per-node 2");
  fail(64, "export run --format mscclpp --output c.json --switch-copies perhaps");
}

}  // namespace
}  // namespace rondo::test::test_xml_commands
