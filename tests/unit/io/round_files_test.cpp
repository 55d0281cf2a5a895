#include "rondo/io/round_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "damaged_files.hpp"
#include "example_round.hpp"

namespace rondo::round_files_test {
namespace {

constexpr const char* kDigest = "0123456789abcdef";

class RoundFiles : public testing::Test {
 protected:
  void write(const RoundRecord& record) const { write_round_file(folder.path(), record, kDigest, *alone); }
  std::filesystem::path path_of(std::int64_t round) const { return round_file_path(folder.path(), round); }
  RoundPrefix read_prefix() const { return read_round_files(folder.path(), kDigest); }
  std::ptrdiff_t num_files() const {
    const std::filesystem::directory_iterator entries(folder / "rounds");
    return std::distance(begin(entries), end(entries));
  }
  void expect_prefix(std::size_t num_rounds, std::initializer_list<std::string> fragments) const {
    const RoundPrefix prefix = read_prefix();
    ASSERT_EQ(prefix.rounds.size(), num_rounds) << prefix.stopped_by;
    for (std::size_t i = 0; i < num_rounds; ++i) {
      EXPECT_EQ(text_of(prefix.rounds[i]), text_of(example_round(static_cast<std::int64_t>(i))));
    }
    EXPECT_EQ(prefix.stopped_by.empty(), fragments.size() == 0) << prefix.stopped_by;
    for (const std::string& fragment : fragments) {
      EXPECT_NE(prefix.stopped_by.find(fragment), std::string::npos)
          << "'" << fragment << "' is missing in: " << prefix.stopped_by;
    }
  }

  TemporaryFolder folder;
  std::unique_ptr<Communicator> alone = make_local_communicator();
};

TEST_F(RoundFiles, RoundTripKeepsEveryBit) {
  RoundRecord no_plan = example_round(3);
  no_plan.plan.reset();
  RoundRecord empty_plan = example_round(3);
  empty_plan.plan = std::vector<Send>{};
  const RoundRecord nothing{.round = 3, .finish_before_us = -0.0};
  RoundRecord no_finish = example_round(3);
  no_finish.finish_after_us = std::nan("7");
  for (const RoundRecord& record : {example_round(3), no_plan, empty_plan, nothing, no_finish,
                                    round_with_transfers(3), example_round(3, 300'001)}) {
    write(record);
    const RoundRecord read = read_round_file(path_of(3));
    EXPECT_TRUE(text_of(read) == text_of(record));
    EXPECT_EQ(read.plan.has_value(), record.plan.has_value());
    EXPECT_EQ(num_files(), 1);
  }
}

TEST_F(RoundFiles, CarryDigestAndNumber) {
  EXPECT_EQ(path_of(7).filename(), "round-00007.h5");
  EXPECT_EQ(path_of(123456).filename(), "round-123456.h5");
  write(example_round(7));
  EXPECT_EQ(verify_user_block(path_of(7)).problem_digest, kDigest);
  EXPECT_EQ(verify_user_block(path_of(7)).round, 7);
}

TEST_F(RoundFiles, HaveColumnsOfTransfersOnlyWhereTheyMust) {
  write(example_round(0));
  write(round_with_transfers(1));
  for (const char* name : {"transfer", "rate_GBps"}) {
    const auto has_column = [&](int round) {
      return content_of(path_of(round)).find(std::string(name) + '\0') != std::string::npos;
    };
    EXPECT_FALSE(has_column(0)) << name;
    EXPECT_TRUE(has_column(1)) << name;
  }
}

TEST_F(RoundFiles, SameRecordGivesTheSameBytes) {
  write(example_round(0, 1000));
  const std::string first = content_of(path_of(0));
  write(example_round(0, 1000));
  EXPECT_TRUE(content_of(path_of(0)) == first);
}

TEST_F(RoundFiles, RefusesEveryDamagedFile) {
  write(example_round(0));
  expect_damage_refused(path_of(0), [&] {
    EXPECT_TRUE(read_prefix().rounds.empty());
    read_round_file(path_of(0));
  });
}

/// A file whose checksum is right, but whose content is not what the format asks.
TEST_F(RoundFiles, RefusesWrongContentBehindARightChecksum) {
  const auto bytes_of = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  RoundRecord record = example_round(0);
  record.sends[3].start_us = record.sends[2].start_us;
  record.sends[3].end_us = 12345.5;
  record.state.buffers[1].from_us = 54321.5;
  record.state.unmet = {{ChunkId{77770}, GpuId{77771}}, {ChunkId{77772}, GpuId{77773}}};
  record.parts[0].rank = 88888;
  write(record);
  const auto expect_refused = [&](const std::string& from, const std::string& to,
                                  std::initializer_list<std::string> fragments) {
    expect_content_refused(
        path_of(0), [&] { read_round_file(path_of(0)); }, from, to, fragments);
  };
  expect_refused("rondo-round", "rondo-rounD", {"round-00000.h5", "rondo-rounD"});
  expect_refused("transfers_changed", "transfers_changeD", {"parts/transfers_changeD", "unknown name"});
  expect_refused("in_flight", "in_fligHt", {"state/in_fligHt", "unknown name"});
  const double infinity = std::numeric_limits<double>::infinity();
  expect_refused(bytes_of(12345.5), bytes_of(infinity), {"sends[3]", "finite"});
  expect_refused(bytes_of(54321.5), bytes_of(std::nan("")), {"state/buffers/from_us[1]", "finite"});
  expect_refused(bytes_of(77771), bytes_of(-2), {"state/unmet/gpu", "[0] is -2"});
  expect_refused(bytes_of(77770), bytes_of(77779), {"state/unmet", "not sorted"});
  expect_refused(bytes_of(88888), bytes_of(-1), {"parts/rank", "[0] is -1"});
  seal_user_block(path_of(0), kDigest, 1);
  expect_error(ExitCode::bad_data, {"round: 0", "user block says 1"}, [&] { read_round_file(path_of(0)); });
}

TEST_F(RoundFiles, WritesNothingThatItWouldNotRead) {
  const auto expect_refused = [&](auto change, std::initializer_list<std::string> fragments) {
    RoundRecord record = example_round(0);
    change(record);
    expect_error(ExitCode::internal, fragments, [&] { write(record); });
  };
  expect_refused([](RoundRecord& r) { r.round = -1; }, {"round: -1"});
  expect_refused([](RoundRecord& r) { r.end_us = -1; }, {"end_us: -1"});
  expect_refused([](RoundRecord& r) { r.bound_us = std::nan(""); }, {"bound_us"});
  expect_refused([](RoundRecord& r) { r.sends[2].link = LinkId{}; }, {"sends/link[2]: -1"});
  expect_refused([](RoundRecord& r) { std::swap(r.sends[0], r.sends[4]); }, {"sends", "not sorted"});
  expect_refused([](RoundRecord& r) { (*r.plan)[1].start_us = std::nan(""); }, {"plan[1]", "finite"});
  expect_refused([](RoundRecord& r) { r.sends[2].transfer = -2; }, {"sends/transfer[2]: -2"});
  expect_refused([](RoundRecord& r) { (*r.plan)[1].rate_GBps = 0; }, {"plan/rate_GBps[1]: 0", "positive"});
  expect_refused([](RoundRecord& r) { std::swap(r.state.buffers[0], r.state.buffers[1]); },
                 {"state/buffers", "not sorted"});
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST_F(RoundFiles, PrefixIsAllThatFollowsOneAnother) {
  expect_prefix(0, {});
  for (int i = 0; i < 4; ++i) write(example_round(i));
  expect_prefix(4, {});
}

TEST_F(RoundFiles, PrefixEndsBeforeAMissingOrDamagedRound) {
  for (int i = 0; i < 4; ++i) write(example_round(i));
  const std::string whole = content_of(path_of(2));
  set_content(path_of(2), whole.substr(0, whole.size() - 1));
  expect_prefix(2, {"round-00002.h5", "truncated"});
  std::filesystem::remove(path_of(2));
  expect_prefix(2, {"round-00002.h5' is missing", "round-00003.h5"});
  set_content(path_of(2), content_of(path_of(1)));
  expect_prefix(2, {"round-00002.h5", "holds round 1"});
  std::filesystem::remove(path_of(2));
  std::filesystem::create_directory(path_of(2));
  expect_prefix(2, {"round-00002.h5", "directory"});
}

TEST_F(RoundFiles, PrefixEndsBeforeARoundThatDoesNotFollow) {
  write(example_round(0));
  RoundRecord later = example_round(1);
  later.begin_us += 1;
  write(later);
  expect_prefix(1, {"round-00001.h5", "begin_us: 101", "ended at 100"});
}

TEST_F(RoundFiles, PrefixEndsBeforeAnotherProblem) {
  write(example_round(0));
  write_round_file(folder.path(), example_round(1), "fedcba9876543210", *alone);
  expect_prefix(1, {"round-00001.h5", "another problem", "fedcba9876543210", kDigest});
}

TEST_F(RoundFiles, OtherFilesAreIgnored) {
  write(example_round(0));
  for (const char* name : {".rondo-0123456789abcdef.tmp", "round-00001.h5.bak", "round-1.h5", "round-.h5",
                           "round-000002.h5", "notes"}) {
    set_content(folder / "rounds" / name, "x");
  }
  expect_prefix(1, {});
}

TEST_F(RoundFiles, RemovesFromARoundOn) {
  remove_round_files(folder.path(), 0);
  for (int i = 0; i < 5; ++i) write(example_round(i));
  set_content(path_of(3), "damaged");
  set_content(folder / "rounds/.rondo-0123456789abcdef.tmp", "left behind by a kill");
  set_content(folder / "rounds/notes", "x");
  remove_round_files(folder.path(), 3);
  expect_prefix(3, {});
  EXPECT_EQ(num_files(), 4);
  remove_round_files(folder.path(), 0);
  expect_prefix(0, {});
  EXPECT_EQ(num_files(), 1);
}

TEST_F(RoundFiles, SayWhyTheyCannot) {
  const auto write_to = [&](const std::filesystem::path& place) {
    write_round_file(place, example_round(0), kDigest, *alone);
  };
  set_content(folder / "file", "x");
  expect_error(ExitCode::cannot_create, {"absent/rounds", "No such file"},
               [&] { write_to(folder / "absent"); });
  expect_error(ExitCode::cannot_create, {"file/rounds", "Not a directory"},
               [&] { write_to(folder / "file"); });
  expect_error(ExitCode::cannot_create, {"/proc/rounds"}, [&] { write_to("/proc"); });
  EXPECT_EQ(folder.num_files(), 1U);
  expect_error(ExitCode::no_input, {"absent.h5"}, [&] { read_round_file(folder / "absent.h5"); });
  std::filesystem::create_directories(path_of(0));
  expect_error(ExitCode::cannot_create, {"round-00000.h5", "directory"}, [&] { write_to(folder.path()); });
  EXPECT_EQ(num_files(), 1);
}

#ifdef RONDO_H5DUMP
TEST_F(RoundFiles, AreReadByH5dump) {
  write(example_round(2));
  const std::string command = RONDO_H5DUMP " '" + path_of(2).string() + "'";
  std::string text;
  std::array<char, 4096> piece;
  FILE* pipe = ::popen(command.c_str(), "r");
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe))
    text.append(piece.data(), count);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  for (const char* expected : {"GROUP \"sends\"", "GROUP \"plan\"", "GROUP \"in_flight\"", "GROUP \"unmet\"",
                               "\"rondo-round\"", "\"pop 2 of 2\"", "\"us\"", "200, 200, 200.1, 200.1"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << " is missing in\n" << text;
  }
}
#endif

}  // namespace
}  // namespace rondo::round_files_test
