#include <gtest/gtest.h>

#include "expected_seconds.hpp"

namespace rondo::test_expected_seconds {
namespace {

TEST(ExpectedSeconds, AreThoseOfTheLastOneOfItsKind) {
  ExpectedSeconds expected;
  const Candidate quick{.engine = 0, .chunks = 2, .policy = "quick", .work = 10};
  const Candidate slow{.engine = 0, .chunks = 2, .policy = "slow", .work = 10};
  EXPECT_EQ(expected.of(quick), 10);  // nothing is known: by work alone
  expected.learn(quick, 1);
  EXPECT_EQ(expected.of(slow), 1);  // as all others
  expected.learn(slow, 4);
  EXPECT_EQ(expected.of({.engine = 0, .chunks = 4, .policy = "quick", .work = 20}), 2);
  EXPECT_EQ(expected.of({.engine = 0, .chunks = 4, .policy = "slow", .work = 20}), 8);
  EXPECT_EQ(expected.of({.engine = 1, .chunks = 4, .policy = "slow", .work = 20}), 5);  // 5 s for 20
  expected.learn(slow, 2);
  EXPECT_EQ(expected.of(slow), 2);
}

}  // namespace
}  // namespace rondo::test_expected_seconds
