// What is known of times in catalogues without another replay.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "found_times.hpp"
#include "known_points.hpp"
#include "rondo/core/generators.hpp"

namespace rondo::catalogue::test_known_times {
namespace {

namespace fs = std::filesystem;

// 10, 11 and 20 us at 1, 2 and 8 bytes: lines of 1 and of 1.5 us a byte.
TEST(KnownPoints, SayWhatIsTheLeastElsewhere) {
  KnownPoints points;
  EXPECT_EQ(points.least_us(4), 0);
  points.add(2, 11);
  EXPECT_EQ(points.least_us(1), 0);
  EXPECT_EQ(points.least_us(4), 11);
  points.add(8, 20);
  points.add(1, 10);
  EXPECT_EQ(points.least_us(4), 13);
  EXPECT_EQ(points.least_us(16), 32);
  EXPECT_EQ(points.least_us(0.5), 9.5);
  EXPECT_EQ(points.most_us(5), 15.5);
  EXPECT_EQ(points.most_us(8), 20);
  EXPECT_TRUE(std::isinf(points.most_us(0.5)));
  EXPECT_TRUE(std::isinf(points.most_us(9)));
  EXPECT_EQ(points.least_us(2), 11);
}

// Half a line of a kill and a line that was changed count for nothing, and those after them do.
TEST(FoundTimes, AreKeptLineByLine) {
  std::string pattern = (fs::temp_directory_path() / "rondo-times-XXXXXX").string();
  const fs::path root = mkdtemp(pattern.data());
  const auto topology = generate_topology("ring:gpus=4");
  const Folder folder = Folder::open_or_make(root / "c");
  const Series series{fingerprint(topology), Collective::allgather};
  EXPECT_TRUE(found_times(folder, series).empty());
  const fs::path of_series = folder.cell_path(series, 1).parent_path();
  fs::create_directories(of_series);
  keep_time(folder, series, 0, "a", 1024, 2.5);
  keep_time(folder, series, 1, "a", 1e9 + 1, std::numeric_limits<double>::infinity());
  std::string line;
  std::getline(std::getline(std::ifstream(of_series / "0.times"), line), line);
  std::ofstream(of_series / "0.times", std::ios::app) << "b" << line.substr(1) << "\n" << line.substr(0, 9);
  keep_time(folder, series, 0, "c", 3, 0.1);
  const KnownTimes expected{
      {{"a", 1024}, 2.5}, {{"a", 1e9 + 1}, std::numeric_limits<double>::infinity()}, {{"c", 3}, 0.1}};
  EXPECT_EQ(found_times(folder, series), expected);
  remove_found_times(folder, series);
  EXPECT_TRUE(found_times(folder, series).empty());
  fs::remove_all(root);
}

}  // namespace
}  // namespace rondo::catalogue::test_known_times
