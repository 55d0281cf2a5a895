#include "rondo/parallel/communicator.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo::communicator_test {
namespace {

/// The message of `rank`: of a length of its own, some of them empty.
std::string message_of(int rank, std::size_t unit) {
  return std::string(unit * static_cast<std::size_t>(rank % 3), static_cast<char>('a' + rank));
}

TEST(Communicator, LocalIsOneRank) {
  const auto local = make_local_communicator();
  EXPECT_EQ(local->rank(), 0);
  EXPECT_EQ(local->size(), 1);
  EXPECT_TRUE(local->is_root());
  EXPECT_EQ(to_text(local->broadcast(to_bytes("x"), 0)), "x");
  EXPECT_EQ(local->all_gather(to_bytes("x")), (std::vector<Bytes>{to_bytes("x")}));
  EXPECT_EQ(local->max(-2), -2);
  EXPECT_EQ(local->sum(-2), -2);
}

TEST(Communicator, BroadcastReachesEveryRankFromEveryRoot) {
  const auto world = make_world_communicator();
  for (int root = 0; root < world->size(); ++root) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}}) {
      const std::string text(length, static_cast<char>('A' + root));
      const Bytes own = to_bytes(world->rank() == root ? text : "what the others pass is ignored");
      EXPECT_EQ(to_text(world->broadcast(own, root)), text);
    }
  }
}

TEST(Communicator, AllGatherKeepsRankOrderAndLengths) {
  const auto world = make_world_communicator();
  for (const std::size_t unit : {std::size_t{0}, std::size_t{1}, std::size_t{70'000}}) {
    const auto gathered = world->all_gather(to_bytes(message_of(world->rank(), unit)));
    ASSERT_EQ(gathered.size(), static_cast<std::size_t>(world->size()));
    for (int r = 0; r < world->size(); ++r) {
      EXPECT_EQ(to_text(gathered[static_cast<std::size_t>(r)]), message_of(r, unit)) << r;
    }
  }
}

TEST(Communicator, LongMessagesGoInPieces) {
  for (const std::size_t max_message_bytes : {std::size_t{1}, std::size_t{7}, std::size_t{16}}) {
    const auto world = make_world_communicator(max_message_bytes);
    std::string digits;
    for (int i = 0; i < 20 + world->rank(); ++i) digits += std::to_string(i);
    const auto gathered = world->all_gather(to_bytes(digits));
    EXPECT_EQ(to_text(gathered[static_cast<std::size_t>(world->rank())]), digits);
    for (const Bytes& bytes : gathered) EXPECT_EQ(to_text(bytes).substr(0, 12), "012345678910");
    EXPECT_EQ(to_text(world->broadcast(to_bytes(digits), world->size() - 1)), to_text(gathered.back()));
  }
}

TEST(Communicator, ReducesNumbers) {
  const auto world = make_world_communicator();
  const int n = world->size();
  EXPECT_EQ(world->sum(world->rank() + 1), n * (n + 1) / 2.0);
  EXPECT_EQ(world->max(-world->rank()), 0);
  EXPECT_EQ(world->max(world->rank()), n - 1);
  world->barrier();
}

TEST(OnRoot, GivesTheRootsBytesToAll) {
  const auto world = make_world_communicator();
  int calls = 0;
  const Bytes bytes = on_root(*world, [&] {
    ++calls;
    return to_bytes("from " + std::to_string(world->rank()));
  });
  EXPECT_EQ(to_text(bytes), "from 0");
  EXPECT_EQ(calls, world->is_root() ? 1 : 0);
}

TEST(OnRoot, RaisesTheRootsErrorOnAll) {
  const auto world = make_world_communicator();
  for (int repeat = 0; repeat < 2; ++repeat) {
    try {
      on_root(*world, []() -> Bytes { throw Error(ExitCode::no_input, "no such file: x.json"); });
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::no_input);
      EXPECT_STREQ(error.what(), "no such file: x.json");
    }
  }
  EXPECT_EQ(to_text(on_root(*world, [] { return to_bytes("still in step"); })), "still in step");
}

TEST(OnRoot, OtherExceptionsAreFaultsOfOurs) {
  const auto world = make_world_communicator();
  try {
    on_root(*world, []() -> Bytes { throw std::runtime_error("surprise"); });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::internal);
    EXPECT_NE(std::string(error.what()).find("surprise"), std::string::npos);
  }
}

struct Inner {
  std::string name;
  std::map<std::string, double> figures;
  friend bool operator==(const Inner&, const Inner&) = default;
};
struct Outer {
  int number = 0;
  std::optional<Inner> one;
  std::vector<Inner> several;
  friend bool operator==(const Outer&, const Outer&) = default;
};
auto members_of(SameAs<Inner> auto& i) {
  return std::tie(i.name, i.figures);
}
auto members_of(SameAs<Outer> auto& o) {
  return std::tie(o.number, o.one, o.several);
}

TEST(Messages, StructsTravelByTheirMembers) {
  const Outer outer{7, Inner{"a", {{"us", 0.5}}}, {{"", {}}, {"b", {{"x", 1}, {"y", 2}}}}};
  EXPECT_EQ(from_message<Outer>(to_message(outer)), outer);
  EXPECT_EQ(from_message<Outer>(to_message(Outer{})), Outer{});
}

}  // namespace
}  // namespace rondo::communicator_test
