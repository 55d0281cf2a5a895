#include <gtest/gtest.h>

#include <filesystem>

#include "rondo/catalogue/build.hpp"
#include "rondo/catalogue/sampling.hpp"
#include "rondo/catalogue/times.hpp"
#include "rondo/catalogue/upkeep.hpp"
#include "rondo/core/generators.hpp"

namespace rondo::catalogue::test_crossings {
namespace {

namespace fs = std::filesystem;

/// Where the schedules of two cells that lie far apart meet, a third one is often better.
TEST(CatalogueCrossings, NoScheduleOfANearCellIsBetterWhereTwoBinsMeet) {
  std::string pattern = (fs::temp_directory_path() / "rondo-crossings-XXXXXX").string();
  const fs::path root = mkdtemp(pattern.data());
  const auto alone = make_local_communicator();
  const auto topology = std::make_shared<const Topology>(generate_topology("rails:boxes=2,gpus=4"));
  BuildTask task{
      .topology = topology, .series = {{fingerprint(*topology), Collective::broadcast}}, .sizes = {}};
  for (double size = 1e3; size <= 32e6; size *= 8) task.sizes.push_back(size);
  task.options.solve.improve_work = 1e4;
  const Folder folder = Folder::open_or_make(root / "c");
  folder.add_fabric(*topology);
  build(folder, task, {*alone});
  write_index(folder);
  EXPECT_EQ(verify(folder, {*alone}).faults, std::vector<std::string>());
  const Table table = folder.table(task.series.front());
  Times times(folder, table.series);
  for (std::size_t b = 0; b + 1 < table.bins.size(); ++b) {
    const Border& border = *table.bins[b].border;
    for (const Bin& other : table.bins) {
      EXPECT_GE(times.finish_us(other.schedule, border.above_bytes), border.above_us * (1 - 1e-6))
          << border.above_bytes << " " << other.schedule;
      // As at one size alone.
      EXPECT_EQ(times.finish_us(other.schedule, border.above_bytes),
                timed_at(folder, table.series, other.schedule, border.above_bytes).schedule.finish_us);
    }
  }
  const Sampled sampled = sample(folder, 1000, 0, {*alone});
  EXPECT_EQ(sampled.sizes, 1000U);
  EXPECT_LT(sampled.largest_loss, 0.02);
  // A few decide all of them, and none says that times are not convex.
  EXPECT_GT(sampled.replays, 1000U / 32);
  EXPECT_LT(sampled.replays, 500U);
  EXPECT_EQ(sampled.surprises, 0U);
  fs::remove_all(root);
}

}  // namespace
}  // namespace rondo::catalogue::test_crossings
