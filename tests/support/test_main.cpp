// PROGRAM [FILES...] [GoogleTest's options]: runs the tests that these source files of it hold, or all.

#include <gtest/gtest.h>

#include "only_files.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return rondo::keep_only_files(argc, argv) ? RUN_ALL_TESTS() : 64;
}
