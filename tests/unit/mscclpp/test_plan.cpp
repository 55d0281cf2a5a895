#include <gtest/gtest.h>

#include "plans_by_hand.hpp"
#include "rondo/core/error.hpp"
#include "rondo/mscclpp/plan_files.hpp"
#include "rondo/mscclpp/unfolded.hpp"

/// Reading and writing of execution plans, and what they mean at a size.
namespace rondo::mscclpp::test_plan {
namespace {

using test::exchange;

/// What reading the exchange with one change says.
std::string refusal(const std::string& pointer, const Json& value, ExitCode code = ExitCode::bad_data) {
  Plan plan = exchange();
  plan.min_bytes = 64;
  Json json = plan_to_json(plan);
  json[Json::json_pointer(pointer)] = value;
  try {
    plan_from_json(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << pointer << " = " << value << " was accepted";
  return "";
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(PlanFiles, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(plan_from_json(plan_to_json(exchange())), exchange());
  const Plan pipelined = test::pipelined_sum();
  EXPECT_EQ(plan_from_json(plan_to_json(pipelined)), pipelined);
}

TEST(PlanFiles, OlderSpellingAndKeysThatNobodyReads) {
  const Plan switched = test::switched_sum();
  Json json = plan_to_json(switched);
  for (Json& gpu : json["gpus"]) {
    for (Json& channel : gpu["channels"]) {
      if (!channel.contains("buffer_type")) continue;
      channel["buff"] = channel["buffer_type"];
      channel.erase("buffer_type");
    }
  }
  json["made_by"] = "hand";
  json.erase("max_message_size");
  EXPECT_EQ(plan_from_json(json), switched);
}

TEST(PlanFiles, WhatIsWrongIsNamedWithItsPlace) {
  expect_in("known are: nop, barrier, put", refusal("/gpus/0/threadblocks/0/ops/0/name", "teleport"));
  expect_in("gpus[0].threadblocks[0].ops[0]", refusal("/gpus/0/threadblocks/0/ops/0/name", "teleport"));
  expect_in("known channel types are memory, port, switch",
            refusal("/gpus/0/channels/0/channel_type", "radio"));
  expect_in("known buffers are i, o, s", refusal("/gpus/1/remote_buffers/0/type", "x"));
  expect_in("known are Simple, LL", refusal("/protocol", "LL256"));
  expect_in("gpus is empty", refusal("/gpus", Json::array()));
  expect_in("in the order of their ids", refusal("/gpus/1/id", 0));
  expect_in("less than min_message_size", refusal("/max_message_size", 7u));
  expect_in("at most 2^64 - 1", refusal("/max_message_size", -1));
  expect_in("the executor knows sum alone",
            refusal("/gpus/0/threadblocks/0/ops/0/reduce_op", "min", ExitCode::unavailable));
}

TEST(PlanSizes, PipelinesRunPieceByPiece) {
  const Plan plan = test::pipelined_sum();
  EXPECT_EQ(telling_chunk_bytes(plan), 2U * 64);
  const Unfolded unfolded = unfold(plan, 160);
  // 64, 64 and 32 bytes of a chunk.
  std::vector<std::size_t> pieces;
  for (const Action& action : unfolded.tbs[0][0]) {
    if (action.kind == Action::Kind::move) pieces.push_back(action.sources.front().bytes);
  }
  EXPECT_EQ(pieces, (std::vector<std::size_t>{64, 64, 64, 64, 32, 32}));
}

TEST(PlanSizes, AGroupOfThreadblocksSharesAnOperand) {
  Plan plan = exchange();
  Op& put = plan.gpus[0].tbs[0].ops[3];
  put.slice = 2;
  put.num_slices = 3;
  EXPECT_EQ(num_slices(plan), 3U);
  const Unfolded unfolded = unfold(plan, 3);
  const Action& move = unfolded.tbs[0][0][3];
  EXPECT_EQ(move.sources.front().offset, 2U);
  EXPECT_EQ(move.sources.front().bytes, 1U);
}

TEST(PlanSizes, InPlaceByTheCollectivesRule) {
  Plan plan = exchange();
  plan.in_place = true;
  const Unfolded unfolded = unfold(plan, 10);
  EXPECT_EQ(unfolded.memory[1].input, 10U);  // its own part of the output
  EXPECT_EQ(unfolded.memory[1].output, 0U);
  EXPECT_EQ(unfolded.memory[1].scratch, 20U);
}

}  // namespace
}  // namespace rondo::mscclpp::test_plan
