#include <gtest/gtest.h>

#include "program.hpp"

/// rondo catalogue ..., as a user runs it.
namespace rondo::test {
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
}

}  // namespace
}  // namespace rondo::test
