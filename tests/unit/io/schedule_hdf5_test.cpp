#include "rondo/io/schedule_hdf5.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "damaged_files.hpp"
#include "example_schedule.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/schedule_files.hpp"

namespace rondo::schedule_hdf5_test {
namespace {

constexpr const char* kDigest = "0123456789abcdef";

TEST(ScheduleHdf5, RoundTripKeepsEveryBit) {
  const TemporaryFolder folder;
  ProvenSchedule with_cut = example_schedule();
  with_cut.lower_bound = LowerBound{3.1, CutCertificate{{NodeId{0}, NodeId{3}}, 3000}};
  ProvenSchedule with_metric = uneven_schedule();
  with_metric.lower_bound = LowerBound{1.0 / 7, MetricCertificate{{0.1, 1.0 / 3}}};
  ProvenSchedule with_time_cut = example_schedule();
  with_time_cut.lower_bound = LowerBound{1.0 / 7, TimeCutCertificate{GpuId{2}, {0, 0.1, 1.0 / 7, 0.1}}};
  ProvenSchedule with_source = with_time_cut;
  with_source.lower_bound->certificate = TimeCutCertificate{GpuId{1}, {0, 1.0 / 7, 0, 0}, true};
  ProvenSchedule with_counts = with_time_cut;
  with_counts.lower_bound->certificate = TimeCutCertificate{
      .gpu = GpuId{2}, .alpha_us = {0, 0.1, 1.0 / 7, 0.1}, .sources = {GpuId{0}, GpuId{1}}};
  ProvenSchedule with_prices = example_schedule();
  with_prices.lower_bound = LowerBound{1.0 / 7, PricesCertificate{{0, 0.1}, 1.0 / 7, {2, 7}, {1.0 / 3, 0.1}}};
  ProvenSchedule with_joint_cuts = example_schedule();
  with_joint_cuts.lower_bound = LowerBound{
      1.0 / 7, JointCutsCertificate{{{0, 0.1}, 1.0 / 7, {2, 7}, {1.0 / 3, 0.1}},
                                    {{GpuId{1}, 1.0 / 3, {0, 0.1, 1}}, {GpuId{0}, 1, {0.3, 0, 0.2}}},
                                    true}};
  ProvenSchedule with_knowledge = example_schedule();
  with_knowledge.lower_bound = LowerBound{
      1.0 / 7, KnowledgeCertificate{
                   GpuId{2}, {GpuId{0}, GpuId{1}}, {{NodeId{3}}, {NodeId{1}, NodeId{2}}}, {0, 0.1, 1.0 / 7}}};
  ProvenSchedule with_its_source = with_knowledge;
  with_its_source.lower_bound->certificate =
      KnowledgeCertificate{GpuId{0}, {GpuId{2}}, {}, {0, 1.0 / 7}, true};
  ProvenSchedule with_message_prices = with_prices;
  with_message_prices.lower_bound->certificate =
      MessagePricesCertificate{{{0, 0.1}, 1.0 / 7, {2, 7}, {1.0 / 3, 0.1}}, 3, GpuId{1}, true};
  ProvenSchedule with_those_of_all = with_prices;
  with_those_of_all.lower_bound->certificate =
      MessagePricesCertificate{{{0, 0.1}, 1.0 / 7, {2, 7}, {1.0 / 3, 0.1}}};
  ProvenSchedule without_bound = uneven_schedule();
  without_bound.lower_bound.reset();
  for (const ProvenSchedule& proven :
       {example_schedule(), with_cut, with_metric, with_time_cut, with_source, with_counts, with_prices,
        with_joint_cuts, with_knowledge, with_its_source, with_message_prices, with_those_of_all,
        without_bound, newest_schedule()}) {
    write_schedule_hdf5(folder / "schedule.h5", proven, kDigest);
    const ProvenSchedule read = read_schedule_hdf5(folder / "schedule.h5");
    // JSON keeps every bit as well, and shows where two schedules differ.
    EXPECT_EQ(schedule_to_json(read).dump(), schedule_to_json(proven).dump());
    EXPECT_EQ(schedule_digest(read.demand, read.schedule), schedule_digest(proven.demand, proven.schedule));
  }
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(ScheduleFiles, TheNameSaysTheFormAndAFolderHoldsARun) {
  const TemporaryFolder folder;
  for (const char* name : {"schedule.json", "schedule.h5"}) {
    write_schedule(folder / name, example_schedule());
    EXPECT_EQ(content_of(folder / name).starts_with("{"), std::string(name).ends_with(".json"));
    EXPECT_EQ(schedule_to_json(read_schedule(folder / name)), schedule_to_json(example_schedule()));
  }
  EXPECT_EQ(schedule_to_json(read_schedule(folder / "")), schedule_to_json(example_schedule()));
}

TEST(ScheduleHdf5, LongColumnsAreCompressed) {
  // 2^20 chunks one after another over one link.
  constexpr int kChunks = 1 << 20;
  const TemporaryFolder folder;
  const Topology pair({"pair", "", {Node{}, Node{}}, {{NodeId{0}, NodeId{1}, 1, 1}}, {}});
  const Demand demand(Collective::custom, kChunks * 1000.0, 2, {{GpuId{0}, kChunks * 1000.0, {GpuId{1}}, 0}},
                      kChunks);
  Schedule schedule;
  for (int c = 0; c < kChunks; ++c)
    schedule.sends.push_back({ChunkId{c}, LinkId{0}, c + 0.0, c + 1.0, c + 2.0});
  schedule.finish_us = kChunks + 1.0;
  write_schedule_hdf5(folder / "long.h5", {pair, demand, schedule}, kDigest);
  EXPECT_LT(std::filesystem::file_size(folder / "long.h5"),
            std::size_t{kChunks} * 20);  // of 49 bytes a chunk
  const ProvenSchedule read = read_schedule_hdf5(folder / "long.h5");
  EXPECT_EQ(schedule_digest(read.demand, read.schedule), schedule_digest(demand, schedule));
}

TEST(ScheduleHdf5, SameScheduleGivesTheSameBytes) {
  const TemporaryFolder folder;
  write_schedule_hdf5(folder / "a.h5", example_schedule(), kDigest);
  write_schedule_hdf5(folder / "b.h5", example_schedule(), kDigest);
  EXPECT_EQ(content_of(folder / "a.h5"), content_of(folder / "b.h5"));
}

/// Written by Rondo 0.1.0. Another libhdf5 may lay the same content out otherwise, so contents are compared.
TEST(ScheduleHdf5, AFileOfVersion1IsWrittenAsItWas) {
  const TemporaryFolder folder;
  const std::string old = content_of(RONDO_SOURCE_DIR "/tests/fuzz/corpus/schedule_file/small.h5");
  std::vector<char> bytes(kUserBlockBytes);
  bytes.insert(bytes.end(), old.begin(), old.end());
  seal_user_block(bytes, kDigest, -1);
  set_content(folder / "old.h5", {bytes.data(), bytes.size()});
  const ProvenSchedule proven = read_schedule_hdf5(folder / "old.h5");
  write_schedule_hdf5(folder / "new.h5", proven, kDigest);
  for (const char* name : {"transfer", "rate_GBps", "sources", "reduce", "held", "message_us", "steps"})
    EXPECT_EQ(content_of(folder / "new.h5").find(name), std::string::npos) << name;
  EXPECT_EQ(std::filesystem::file_size(folder / "new.h5"), bytes.size());
  EXPECT_EQ(schedule_to_json(read_schedule_hdf5(folder / "new.h5")).dump(), schedule_to_json(proven).dump());
}

TEST(ScheduleHdf5, RefusesBadColumnsOfVersion2) {
  const TemporaryFolder folder;
  const auto path = folder / "schedule.h5";
  write_schedule_hdf5(path, newest_schedule(), kDigest);
  const auto expect_refused = [&](const std::string& from, const std::string& to,
                                  std::initializer_list<std::string> fragments) {
    expect_content_refused(
        path, [&] { read_schedule_hdf5(path); }, from, to, fragments);
  };
  const auto bytes_of = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  expect_refused(bytes_of(1.0 / 7), bytes_of(-1.0), {"sends.rate_GBps[2] is -1"});
  expect_refused(bytes_of(1.0 / 3), bytes_of(-1.0), {"link 0", "message_us is -1"});
  expect_refused(bytes_of(100.1), bytes_of(300.0), {"link 1", "200 us follows one from 300 us"});
  expect_refused("steps_GBps", "steps_GBpt", {"links/steps_GBpt", "unknown name"});
  expect_refused(bytes_of(std::array<std::int32_t, 2>{-1, 7}), bytes_of(std::array<std::int32_t, 2>{-3, 7}),
                 {"sends.transfer[0] is -3"});
  expect_refused("leave", "right", {"certificate/side", "'right'", "enter or leave"});
}

TEST(ScheduleHdf5, RefusesSourcesOfATimeCutOfASource) {
  const TemporaryFolder folder;
  ProvenSchedule proven = example_schedule();
  proven.lower_bound = LowerBound{1, TimeCutCertificate{GpuId{2}, {0, 0, 1, 0}, true, {GpuId{0}}}};
  write_schedule_hdf5(folder / "schedule.h5", proven, kDigest);
  expect_error(ExitCode::bad_data, {"certificate", "sources"},
               [&] { read_schedule_hdf5(folder / "schedule.h5"); });
}

TEST(ScheduleHdf5, CarriesTheProblemsDigest) {
  const TemporaryFolder folder;
  write_schedule_hdf5(folder / "schedule.h5", example_schedule(), kDigest);
  EXPECT_EQ(verify_user_block(folder / "schedule.h5").problem_digest, kDigest);
  EXPECT_EQ(verify_user_block(folder / "schedule.h5").round, -1);
}

TEST(ScheduleHdf5, RefusesDamagedFiles) {
  const TemporaryFolder folder;
  const auto path = folder / "schedule.h5";
  write_schedule_hdf5(path, example_schedule(), kDigest);
  expect_damage_refused(path, [&] { read_schedule_hdf5(path); });
}

/// A file whose checksum is right, but whose content is not what the format asks.
TEST(ScheduleHdf5, RefusesWrongContentBehindARightChecksum) {
  const TemporaryFolder folder;
  const auto path = folder / "schedule.h5";
  write_schedule_hdf5(path, example_schedule(), kDigest);
  const auto expect_refused = [&](const std::string& from, const std::string& to,
                                  std::initializer_list<std::string> fragments) {
    expect_content_refused(
        path, [&] { read_schedule_hdf5(path); }, from, to, fragments);
  };
  expect_refused("rondo-schedule", "rondo-schedulE", {"schedule.h5", "rondo-schedulE"});
  expect_refused("broadcast", "broadcasu", {"broadcasu"});
  expect_refused("arrival_us", "arrivax_us", {"sends/arrivax_us", "unknown name"});
}

TEST(ScheduleHdf5, SaysWhyItCannot) {
  const TemporaryFolder folder;
  set_content(folder / "file", "x");
  expect_error(ExitCode::no_input, {"absent.h5"}, [&] { read_schedule_hdf5(folder / "absent.h5"); });
  expect_error(ExitCode::cannot_create, {"file/schedule.h5", "Not a directory"},
               [&] { write_schedule_hdf5(folder / "file/schedule.h5", example_schedule(), kDigest); });
  expect_error(ExitCode::cannot_create, {"/proc"},
               [&] { write_schedule_hdf5("/proc/schedule.h5", example_schedule(), kDigest); });
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(ScheduleDigest, SeesEveryField) {
  const ProvenSchedule proven = example_schedule();
  const std::string digest = schedule_digest(proven.demand, proven.schedule);
  EXPECT_EQ(digest.size(), 16U);
  const auto digest_after = [&](auto change) {
    Schedule changed = proven.schedule;
    change(changed.sends[2]);
    return schedule_digest(proven.demand, changed);
  };
  EXPECT_NE(digest_after([](Send& s) { s.chunk = ChunkId{1}; }), digest);
  EXPECT_NE(digest_after([](Send& s) { s.link = LinkId{0}; }), digest);
  EXPECT_NE(digest_after([](Send& s) { s.start_us = std::nextafter(s.start_us, 9.0); }), digest);
  EXPECT_NE(digest_after([](Send& s) { s.end_us = std::nextafter(s.end_us, 9.0); }), digest);
  EXPECT_NE(digest_after([](Send& s) { s.arrival_us = std::nextafter(s.arrival_us, 9.0); }), digest);
  EXPECT_NE(digest_after([](Send& s) { s.op = SendOp::reduce; }), digest);
  EXPECT_NE(schedule_digest(make_demand(Collective::broadcast, 3001, 3, 2), proven.schedule), digest);
  EXPECT_NE(schedule_digest(make_demand(Collective::broadcast, 3000, 3, 2, GpuId{1}), proven.schedule),
            digest);
  EXPECT_NE(digest_after([](Send& s) { s.transfer = 0; }), digest);
  EXPECT_NE(digest_after([](Send& s) { s.rate_GBps = 1; }), digest);
  EXPECT_NE(digest_after([](Send& s) { s.rate_GBps = 1; }), digest_after([](Send& s) { s.rate_GBps = 2; }));
  EXPECT_EQ(digest, "57d0dfa39e8ab798");  // of Rondo 0.1.0: a name of schedules that people keep
  Schedule other_finish = proven.schedule;
  other_finish.finish_us = 99;  // a claim, not content
  EXPECT_EQ(schedule_digest(proven.demand, other_finish), digest);
}

TEST(ScheduleDigest, SeesSourcesAndWhatIsHeld) {
  const ProvenSchedule proven = newest_schedule();
  const std::string digest = schedule_digest(proven.demand, proven.schedule);
  const auto digest_after = [&](auto change) {
    std::vector<Contribution> contributions(proven.demand.contributions().begin(),
                                            proven.demand.contributions().end());
    change(contributions);
    return schedule_digest(Demand(Collective::custom, 3000, 3, contributions, 1), proven.schedule);
  };
  EXPECT_EQ(digest_after([](auto&) {}), digest);
  EXPECT_NE(digest_after([](auto& c) { c[1].sources.clear(); }), digest);
  EXPECT_NE(digest_after([](auto& c) { c[0].source_ready_us[1] = 0.2; }), digest);
  EXPECT_NE(digest_after([](auto& c) { c[0].source_ready_us.clear(); }), digest);
  EXPECT_NE(digest_after([](auto& c) { c[0].held.pop_back(); }), digest);
  EXPECT_NE(digest_after([](auto& c) { c[0].held[0].sources.pop_back(); }), digest);
  EXPECT_NE(digest_after([](auto& c) { c[0].held[0].gpu = GpuId{1}; }), digest);
  EXPECT_NE(digest_after([](auto& c) {
              c[0].destinations = {GpuId{1}};
              c[1].destinations = {GpuId{0}};
              c[1].reduce = true;
            }),
            digest_after([](auto& c) { c[0].destinations = {GpuId{1}}; }));
}

#ifdef RONDO_H5DUMP
std::string output_of(const std::string& command) {
  std::string output;
  std::array<char, 4096> piece;
  FILE* pipe = ::popen(command.c_str(), "r");
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe))
    output.append(piece.data(), count);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

TEST(ScheduleHdf5, IsReadByH5dump) {
  const TemporaryFolder folder;
  write_schedule_hdf5(folder / "schedule.h5", example_schedule(), kDigest);
  const std::string text = output_of(RONDO_H5DUMP " '" + (folder / "schedule.h5").string() + "'");
  for (const char* expected :
       {"GROUP \"sends\"", "DATASET \"arrival_us\"", "ATTRIBUTE \"units\"", "\"us\"", "\"GB/s\"",
        "\"store_and_forward\"", "\"rondo-schedule\"", "ATTRIBUTE \"finish_us\"", "1.5, 1.6, 6.6"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << " is missing in\n" << text;
  }
}
#endif

}  // namespace
}  // namespace rondo::schedule_hdf5_test
