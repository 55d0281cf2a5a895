#include <gtest/gtest.h>

#include <string>

#include "expect_error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/version.hpp"

namespace rondo::test_units {
namespace {

TEST(ParseSize, ReadsNumbersWithUnits) {
  EXPECT_EQ(parse_size("512"), 512);
  EXPECT_EQ(parse_size("7B"), 7);
  EXPECT_EQ(parse_size("25 KB"), 25e3);
  EXPECT_EQ(parse_size("1.5MB"), 1.5e6);
  EXPECT_EQ(parse_size("1GB"), 1e9);
  EXPECT_EQ(parse_size(" 1 GB "), 1e9);
  EXPECT_EQ(parse_size("1e3KB"), 1e6);
  EXPECT_EQ(parse_size("64KiB"), 65536);
  EXPECT_EQ(parse_size("1MiB"), 1048576);
  EXPECT_EQ(parse_size("2GiB"), 2147483648.0);
}

class ParseSizeRefuses : public testing::TestWithParam<const char*> {};

TEST_P(ParseSizeRefuses, NamesTheText) {
  const std::string text = GetParam();
  expect_error(ExitCode::usage, {"'" + text + "'", "such as 1GB"}, [&] { parse_size(text); });
}

INSTANTIATE_TEST_SUITE_P(Texts, ParseSizeRefuses,
                         testing::Values("", " ", "GB", "1GBB", "1gb", "1 G B", "1,5GB", "0x10", "-1GB", "0",
                                         "0GB", "nan", "inf", "1e400", "1e-400", "1e308GB"));

TEST(FormatSize, UsesFourDigitsAtMost) {
  EXPECT_EQ(format_size(1), "1 B");
  EXPECT_EQ(format_size(999), "999 B");
  EXPECT_EQ(format_size(62500), "62.5 KB");
  EXPECT_EQ(format_size(65536), "65.54 KB");
  EXPECT_EQ(format_size(999'960), "1 MB");
  EXPECT_EQ(format_size(1e9), "1 GB");
  EXPECT_EQ(format_size(12'345e9), "12345 GB");
}

TEST(Units, BandwidthsAreDecimalGigabytesASecond) {
  EXPECT_DOUBLE_EQ(transmission_us(25e3, 50), 0.5);
  EXPECT_DOUBLE_EQ(algorithm_bandwidth_GBps(1e9, 40000), 25);
}

TEST(Version, IsPartOfTheProducer) {
  EXPECT_EQ(producer(), std::string("rondo ") + version());
}

}  // namespace
}  // namespace rondo::test_units
