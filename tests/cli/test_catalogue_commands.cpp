#include <gtest/gtest.h>

#include "program.hpp"

/// rondo catalogue ..., as a user runs it.
namespace rondo::test::test_catalogue_commands {
namespace {

using CatalogueCommands = ProgramTest;

std::vector<std::string> build(const std::string& more) {
  return split("catalogue build --topology ring:gpus=4 --improve-work 1e4 " + more);
}

TEST_F(CatalogueCommands, BuiltOnAnyNumberOfRanksLookedUpAndKept) {
  const std::string cells =
      "--collectives allgather,alltoall,broadcast --sizes 1KB,32KB..128KB,4MB --output ";
  succeed(build(cells + "one"));
  const std::string built = succeed(build(cells + "two"), 2);
  EXPECT_TRUE(contains(built, "solved")) << built;
  const std::string shown = succeed(split("catalogue list --cells one"));
  EXPECT_EQ(shown, succeed(split("catalogue list --cells two")));
  EXPECT_TRUE(contains(succeed(build(cells + "two"), 2), "none made, 15 were there"));
  EXPECT_TRUE(contains(succeed(split("catalogue verify two"), 2), "15 cells"));
  const std::string found =
      succeed(split("catalogue lookup two --collective allgather --size 3MB --output ag.h5"));
  EXPECT_TRUE(contains(found, "best of the catalogue from")) << found;
  EXPECT_TRUE(contains(succeed({"verify", "ag.h5"}), "allgather of 3 MB"));
  EXPECT_TRUE(contains(succeed(split("catalogue show two --collective broadcast")), "below"));
  const std::string checked =
      succeed(split("catalogue check two --topology ring:gpus=4 --degrade 0.1:0.5"), 2);
  EXPECT_TRUE(contains(checked, "to be solved again")) << checked;
  succeed(split("catalogue refresh two --topology ring:gpus=4 --degrade 0.1:0.5 --improve-work 1e4"), 2);
  succeed(split("catalogue verify two"));
  EXPECT_TRUE(contains(succeed(split("catalogue merge both --from one,two")), "15 were equal"));
  EXPECT_TRUE(contains(succeed(split("catalogue prune both")), "removed 0 cells"));
  succeed(split("catalogue verify both"));
}

TEST_F(CatalogueCommands, HasRepairsReady) {
  succeed(build("--collectives allgather --sizes 1MB,4MB --output c"));
  succeed(split("catalogue lookup c --collective allgather --size 3MB --output ag.h5"));
  succeed(split("repair ag.h5 --at 20 --all-single-failures --catalogue c"), 2);
  // The same as in a folder of one's own.
  succeed(split("repair ag.h5 --at 20 --all-single-failures --output own"));
  const std::string failed = "catalogue lookup c --collective allgather --size 3MB --at 20 --failed ";
  const std::string found = succeed(split(failed + "g1:g2 --output rest.h5"));
  EXPECT_TRUE(contains(found, "whole: finish")) << found;
  EXPECT_TRUE(read_file(at(found.substr(0, found.find('\n')))) == read_file(at("own/1-2.h5")));
  succeed({"verify", "rest.h5"});
  EXPECT_TRUE(contains(succeed(split("catalogue verify c")), "4 repairs"));
  // A size of the build: shown with its cell.
  succeed(split("catalogue lookup c --collective allgather --size 4MB --output ag4.h5"));
  succeed(split("repair ag4.h5 --at 0 --all-single-failures --catalogue c"));
  const std::string shown = succeed(split("catalogue show c --collective allgather"));
  EXPECT_TRUE(contains(shown, "repairs of")) << shown;
  succeed(split("catalogue merge both --from c"));
  EXPECT_TRUE(contains(succeed(split("catalogue verify both")), "8 repairs"));

  const auto refused = [&](const std::string& arguments, int code, const std::string& part) {
    const Outcome outcome = rondo(split(arguments));
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  };
  const std::string lookup = "catalogue lookup c --collective allgather --size ";
  refused(lookup + "3MB --at 21 --failed g1:g2", 66, "it has them at 20 us");
  refused(lookup + "2MB --at 20 --failed g1:g2", 66, "none of this schedule");
  refused(lookup + "3MB --at 20 --failed g1:g3", 64, "no link joins g1:g3");
  refused(lookup + "3MB --at 20 --failed g1:g2,g2:g3", 64, "2 pairs");
  refused(lookup + "3MB --at 20", 64, "--failed");
  refused("repair ag.h5 --at 20 --without g1:g2 --catalogue c", 64, "--all-single-failures");
  refused("repair ag.h5 --at 20 --all-single-failures --catalogue own", 66, "is no catalogue");
  succeed(split(
      "solve --topology ring:gpus=5 --collective allgather --size 9MB --improve-work 0 --output other"));
  refused("repair other --at 20 --all-single-failures --catalogue c", 66, "is not of the fabric");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(at("c/repairs"))) {
    if (entry.path().filename() == "1-2.h5")
      std::filesystem::copy_file(at("ag.h5"), entry.path(),
                                 std::filesystem::copy_options::overwrite_existing);
  }
  refused(lookup + "3MB --at 20 --failed g1:g2", 65, "another schedule");
  refused("catalogue verify c", 65, "1-2.h5");
}

TEST_F(CatalogueCommands, ExportedForAllSizes) {
  succeed(build("--collectives allgather,allreduce,alltoall --sizes 1KB,64KB,1MB,16MB --output c"), 2);
  EXPECT_TRUE(contains(succeed(split("catalogue verify c --random-sizes 20"), 2), "20 random sizes"));
  for (const std::string more : {"--placement in-place", "--most 1"}) {
    const std::string folder = "xml" + std::to_string(more.size());
    succeed(split("catalogue export c --output " + folder + " " + more));
    const auto list = read_json(at(folder + ".json"));
    EXPECT_EQ(list["series"].size(), 3U);
    for (const auto& series : list["series"]) {
      std::int64_t from = 0;
      for (const auto& program : series["programs"]) {
        EXPECT_EQ(program["min_bytes"], from);
        from = program["max_bytes"].get<std::int64_t>() + 1;
        succeed({"check-xml", folder + "/" + program["file"].get<std::string>()});
      }
      EXPECT_GT(from, std::int64_t{1} << 40);
      EXPECT_TRUE(!contains(more, "--most") || series["programs"].size() == 1) << series;
    }
  }
  succeed(split("catalogue export c --format mscclpp --output plans"));
  for (const auto& entry : std::filesystem::directory_iterator(at("plans")))
    succeed({"check-plan", entry.path().string()});
  succeed(split("catalogue export c --format nccl-tuner --output tuner.csv"));
  const std::string csv = read_file(at("tuner.csv"));
  EXPECT_TRUE(contains(csv, "allgather,0,1099511627776,ring,simple,-1,1,4,-1,-1")) << csv;
  EXPECT_TRUE(contains(csv, "allreduce,0,")) << csv;
  succeed(split("catalogue export c --format features --output features.json"));
  const auto features = read_json(at("features.json"));
  EXPECT_EQ(features["fabric"]["gpus"], 4);
  const auto& cell = features["series"][0]["cells"][3];
  EXPECT_GE(cell["copy_benefit"].get<double>(), 1);
  EXPECT_EQ(cell["delivered"].size(), 10U);
  EXPECT_DOUBLE_EQ(cell["delivered"][9].get<double>(), 1);
  EXPECT_LE(cell["link_utilisation"]["most"].get<double>(), 1 + 1e-9);
  EXPECT_EQ(rondo(split("catalogue export c --output xml8")).exit_code, 73);
  EXPECT_EQ(rondo(split("catalogue export c --format features --most 2 --output f")).exit_code, 64);
}

TEST_F(CatalogueCommands, BadInput) {
  const auto refused = [&](const std::vector<std::string>& arguments, int code, const std::string& part) {
    const Outcome outcome = rondo(arguments);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  };
  refused(build("--output c --sizes 1MB..1KB"), 64, "smaller size first");
  refused(build("--output c --sizes 1KB,1KB"), 64, "twice");
  refused(build("--output c --collectives custom"), 64, "--demand");
  refused(build("--output c --collectives allgather --root 1"), 64, "has a root");
  refused(build("--output c --relay none"), 64, "--groups");
  refused(split("catalogue list none"), 66, "is no catalogue");
  succeed(build("--output c --sizes 1KB --collectives allgather"));
  refused(split("catalogue lookup c --collective alltoall --size 1KB"), 66, "it has allgather");
  refused(split("catalogue lookup c --collective allgather --size 1KB --topology ring:gpus=5"), 66, "not of");
  refused(split("catalogue check c --topology ring:gpus=4"), 64, "--from-fabric");
  refused(build("--output c --sizes 1KB --collectives allgather --seed 3"), 65, "seed=3");
  write_file(at("c/index.sqlite"), "SQLite format 3");
  refused(split("catalogue lookup c --collective allgather --size 1KB"), 65, "--repair");
  refused(split("catalogue verify c"), 65, "index.sqlite");
  succeed(split("catalogue verify c --repair"));
  std::filesystem::remove(std::filesystem::directory_iterator(at("c/schedules"))->path());
  refused(split("catalogue lookup c --collective allgather --size 1KB"), 65, "is gone");
  refused(split("catalogue export c --output programs"), 65, "is gone");
  EXPECT_FALSE(std::filesystem::exists(at("programs")));
}

TEST_F(CatalogueCommands, TunedByAModelAndByACommand) {
  succeed(build("--collectives allgather --sizes 1MB --output c"));
  const std::string tune = "tune c --collective allgather --size 1MB --most-runs 60 ";
  const std::string one = succeed(split(tune + "--noise 5%"));
  EXPECT_TRUE(contains(succeed(split(tune + "--noise 5%"), 2), "measurements were there"));
  const std::string two = succeed(split(tune + "--noise 5% --force"), 2);
  EXPECT_EQ(one, two);
  EXPECT_EQ(rondo(split(tune + "--noise 4%")).exit_code, 65);
  EXPECT_EQ(rondo(split(tune + "--noise 5% --seed 1")).exit_code, 65);

  write_file(at("space.json"), R"({"format": "rondo-tuning-space", "version": 1, "parameters": [
    {"name": "channels", "values": [1, 2, 3, 4]}, {"name": "mode", "values": ["a", "b", "fails"]}]})");
  const std::string measured = succeed({"tune", "c", "--collective", "allgather", "--size", "1MB", "--space",
                                        "space.json", "--most-runs", "100", "--measure",
                                        "case {mode} in fails) exit 1;; esac; echo $((10 "
                                        "* {channels} + {size_bytes} / 100000))",
                                        "--runs", "1", "--hyperband", "off", "--force"});
  EXPECT_TRUE(contains(measured, "best 20 us over 1 runs: channels=1,mode=")) << measured;
  EXPECT_TRUE(contains(measured, "4 points failed; the first: ")) << measured;
  EXPECT_TRUE(contains(measured, "every point is measured")) << measured;

  // The least recent latency wins, and changes with every call.
  const std::string tuned = "catalogue tuned c --collective allgather --size 3MB";
  EXPECT_TRUE(succeed(split(tuned)).starts_with("channels=1,mode=a\n"));
  EXPECT_TRUE(
      succeed(split(tuned + " --record channels=1,mode=a --time-us 50")).starts_with("channels=1,mode=b\n"));
  EXPECT_TRUE(
      succeed(split(tuned + " --record channels=3,mode=a --time-us 12")).starts_with("channels=3,mode=a\n"));
  EXPECT_EQ(rondo(split(tuned + " --record channels=9 --time-us 12")).exit_code, 64);
  succeed(split("catalogue verify c"));
  write_file(at("one.json"), R"({"format": "rondo-tuning-space", "version": 1, "parameters": [
    {"name": "channels", "values": [4]}]})");
  const std::vector<std::string> of_one =
      split("tune c --collective allgather --size 1MB --space one.json --most-runs 1 --runs 1 --force");
  for (const auto& [command, part] : {std::pair("true", "no number"), {"sleep 1000", "did not end within"}}) {
    std::vector<std::string> failing = of_one;
    failing.insert(failing.end(), {"--measure", command, "--timeout", command[0] == 't' ? "1e6" : "0.1"});
    const Outcome outcome = rondo(failing);
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  }
  // A damaged table or state is named.
  for (const std::string ending : {".json", ".measurements"}) {
    for (const auto& entry : std::filesystem::directory_iterator(at("c/tuned"))) {
      const std::string file = entry.path().string();
      if (!file.ends_with(ending)) continue;
      std::string text = read_file(file);
      write_file(file, text.substr(0, text.size() / 2));
      const bool is_table = ending == ".json";
      const Outcome outcome = rondo(split(is_table ? tuned : tune + "--noise 5%"));
      EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
      EXPECT_TRUE(contains(outcome.err, is_table ? ".json" : "--force")) << outcome.err;
    }
  }
}

}  // namespace
}  // namespace rondo::test::test_catalogue_commands
