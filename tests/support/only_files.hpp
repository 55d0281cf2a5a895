#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <string>

namespace rondo {

/// After GoogleTest has taken its own arguments: those left name source files of the program, whose tests are
/// to be run and no others. None: all. False, with a message, where a file has no test or a filter is given
/// as well.
inline bool keep_only_files(int argc, char** argv) {
  if (argc <= 1) return true;
  if (GTEST_FLAG_GET(filter) != "*") {
    std::cerr << "either files or --gtest_filter\n";
    return false;
  }
  std::map<std::string, std::string> filters;  // by file
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string file = std::filesystem::path(test.file()).filename();
      filters[file] += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    if (!filters.contains(argv[i])) {
      std::cerr << "no test is written in " << argv[i] << "\n";
      return false;
    }
    filter += filters.at(argv[i]);
  }
  GTEST_FLAG_SET(filter, filter);
  return true;
}

}  // namespace rondo
