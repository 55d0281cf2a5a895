#include <gtest/gtest.h>

#include "makers.hpp"

namespace rondo::catalogue::test_makers {
namespace {

Cell made_by(const std::string& engine, std::uint64_t seed = 0) {
  Cell cell;
  cell.engine = engine;
  cell.seed = seed;
  return cell;
}

TEST(Makers, AreEnginesByThemselves) {
  EXPECT_EQ(maker_of(made_by("ring"), 8), (Maker{"ring", "", 0, 8}));
  EXPECT_EQ(maker_of(made_by("spanning/even-rates/3", 3), 64), (Maker{"spanning", "even-rates", 3, 64}));
  for (const char* engine :
       {"halves/kept", "kept/order/0", "backwards/kept", "replayed", "spanning/unknown/0", ""})
    EXPECT_EQ(maker_of(made_by(engine), 8), std::nullopt) << engine;
}

TEST(Makers, OfBothSidesAreTriedInNumbersOfChunksBetween) {
  const Maker few{"spanning", "in-order", 0, 64};
  const Maker many{"spanning", "in-order", 1, 1024};
  const Maker other{"ring", "", 0, 16};
  const auto with = [](Maker maker, int chunks) {
    maker.chunks = chunks;
    return maker;
  };
  EXPECT_EQ(makers_between(few, many), (std::vector{few, many, with(many, 256)}));
  EXPECT_EQ(makers_between(few, few), std::vector{few});
  EXPECT_EQ(makers_between(other, many), (std::vector{other, many, with(other, 32), with(many, 512)}));
  EXPECT_EQ(makers_between(std::nullopt, many), (std::vector{many, with(many, 512)}));
  EXPECT_EQ(makers_between(other, std::nullopt), (std::vector{other, with(other, 32)}));
  EXPECT_TRUE(makers_between(std::nullopt, std::nullopt).empty());
}

}  // namespace
}  // namespace rondo::catalogue::test_makers
