#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.hpp"

/// rondo import, and the exports that it reads.
namespace rondo::test::test_import_commands {
namespace {

using Json = nlohmann::json;

class ImportCommands : public ProgramTest {
 protected:
  std::string succeed(const std::string& arguments) const { return ProgramTest::succeed(split(arguments)); }
  /// The report of the file of jobs/algorithms, imported.
  Json import(const std::string& file, const std::string& fabric, const std::string& size) const {
    const std::string path = std::string(RONDO_SOURCE_DIR) + "/jobs/algorithms/" + file;
    succeed("import " + path + " --topology " + fabric + " --size " + size + " --output run --force");
    succeed("verify run");
    return Json::parse(read_file(at("run/report.json")));
  }
};

/// An algorithm of S steps and R rounds in C chunks a contribution costs S alpha + R / C L beta in SCCL's
/// model; here, without barriers, it may end earlier. NCCL's and SCCL's of a DGX-1 meet the bandwidth.
TEST_F(ImportCommands, PublishedAlgorithmsEndWithinTheirCosts) {
  struct Published {
    const char* file;
    const char* fabric;
    int steps;
    double cost_us;  ///< of 1 GB, or less
    double bound_us;
  };
  // dgx1: 0.7 us and 25 GB/s a unit link; rings and full fabrics: 1 us and 50 GB/s.
  const std::vector<Published> all{
      {"ring-allgather.msccl.json", "ring:gpus=8,bandwidth_GBps=50,latency_us=1", 7, 7 * (1 + 2500), 8751},
      {"dgx1-allgather-6-7-7.msccl.json", "dgx1", 7, 7 * 0.7 + 7.0 / 6 * 5000, 5834.0},
      {"dgx1-allgather-2-2-3.msccl.json", "dgx1", 2, 2 * 0.7 + 3.0 / 2 * 5000, 5834.0},
      {"dgx1-allgather-6-3-7.msccl.json", "dgx1", 3, 3 * 0.7 + 7.0 / 6 * 5000, 5834.0},
      {"dgx1-alltoall-8-2-3.msccl.json", "dgx1", 2, 2 * 0.7 + 3.0 / 8 * 40000, 13334.0},
      {"dgx1-allreduce-16-4-6.taccl.json", "dgx1", 4, 4 * 0.7 + 6.0 / 16 * 40000, 11667.4},
      {"ring4-allgather-1-2-3.msccl.json", "ring:gpus=4,bandwidth_GBps=50,latency_us=1", 2, 2 + 3 * 5000,
       7501},
      {"ring-allreduce.taccl.json", "ring:gpus=8,bandwidth_GBps=50,latency_us=1", 14, 14 * (1 + 2500), 17501},
      {"ndv2-2-allgather-hierarchical.xml", "ndv2-2", 0, 1e9, 40002.0}};
  for (const Published& published : all) {
    const Json report = import(published.file, published.fabric, "1GB");
    EXPECT_LE(report["finish_us"].get<double>(), published.cost_us * (1 + 1e-9)) << published.file;
    EXPECT_NEAR(report["lower_bound_us"].get<double>(), published.bound_us, 1e-3 * published.bound_us)
        << published.file;
    if (published.steps > 0) {
      EXPECT_EQ(report["metrics"]["steps"], published.steps) << published.file;
    }
  }
}

TEST_F(ImportCommands, WhatIsExportedComesBack) {
  // Executors have no gather.
  const std::vector<std::pair<std::string, std::vector<std::string>>> all{
      {"allgather", {"msccl-json", "taccl-json", "msccl-xml"}},
      {"allreduce", {"msccl-json", "taccl-json", "msccl-xml"}},
      {"alltoall", {"msccl-xml"}},
      {"reduce_scatter", {"taccl-json"}},
      {"gather", {"msccl-json"}},
      {"reduce", {"taccl-json"}}};
  for (const auto& [collective, formats] : all) {
    succeed(
        "solve --topology dgx1 --size 1MB --chunks 8 --engine list --improve-work 0 --force --output run "
        "--collective " +
        collective);
    for (const std::string& format : formats) {
      succeed("export run --output file --format " + format);
      const std::string said = succeed("import file --topology dgx1 --size 1MB --force --output back");
      EXPECT_NE(said.find(collective + " in 8 chunks"), std::string::npos) << said;
    }
  }
  succeed("verify back");
  succeed("export back --format svg --output again.svg");
  succeed("replay back --size 2MB");
}

TEST_F(ImportCommands, MessagesGoTogetherWhereTheyCost) {
  const std::string path = std::string(RONDO_SOURCE_DIR) + "/jobs/algorithms/dgx1-allgather-6-3-7.msccl.json";
  double finish_us[2] = {};
  for (const int join : {0, 1}) {
    succeed("import " + path + " --topology dgx1 --size 60KB --force --output run");
    succeed("replay run --message-us 0.7 --output costly.json");
    const Json costly = Json::parse(read_file(at("costly.json")));
    write_file(at("fabric.json"), costly["topology"].dump());
    succeed("import " + path + " --topology fabric.json --size 60KB --force --output run --join " +
            (join == 1 ? "auto" : "off"));
    finish_us[join] = Json::parse(read_file(at("run/report.json")))["finish_us"];
  }
  EXPECT_LT(finish_us[1], finish_us[0]);
}

TEST_F(ImportCommands, WhatCannotBeImportedIsNamed) {
  write_file(at("text.json"), "{}");
  write_file(at("half.json"), "{\"sccl_type\": \"algor");
  const std::string ring = std::string(RONDO_SOURCE_DIR) + "/jobs/algorithms/ring-allgather.msccl.json";
  const std::vector<std::tuple<std::string, int, std::string>> bad{
      {"nowhere.json --topology dgx1 --size 1MB --output out", 66, "nowhere.json"},
      {"text.json --topology dgx1 --size 1MB --output out", 65, "text.json: this is no algorithm"},
      {"half.json --topology dgx1 --size 1MB --output out", 65, "line"},
      {ring + " --topology ring:gpus=4 --size 1MB --output out", 65, "8 GPUs"},
      {ring + " --topology dgx1 --size 1MB --output out", 65, "neither a link nor switches"},
      {ring + " --topology ring:gpus=8 --size 0 --output out", 64, "size"},
      {ring + " --topology ring:gpus=8 --output out", 64, "--size is missing"},
      {ring + " --topology ring:gpus=8 --size 1MB --join maybe --output out", 64, "auto or off"}};
  for (const auto& [arguments, code, said] : bad) {
    const Outcome outcome = rondo(split("import " + arguments));
    EXPECT_EQ(outcome.exit_code, code) << arguments << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << arguments << ": " << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(at("out/report.json")));
  }
  succeed("import " + ring + " --topology ring:gpus=8 --size 1MB --output out");
  EXPECT_EQ(rondo(split("import " + ring + " --topology ring:gpus=8 --size 1MB --output out")).exit_code, 65);
  EXPECT_EQ(rondo(split("import " + ring + " --topology ring:gpus=8 --size 2MB --output out")).exit_code, 65);
  succeed("import " + ring + " --topology ring:gpus=8 --size 1MB --output out --force");
  const Outcome custom = rondo(split("export out --format taccl-json --output x --protocol LL"));
  EXPECT_EQ(custom.exit_code, 64) << custom.err;
}

}  // namespace
}  // namespace rondo::test::test_import_commands
