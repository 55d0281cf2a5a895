#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <random>

#include "expect_error.hpp"
#include "rondo/catalogue/build.hpp"
#include "rondo/catalogue/catalogue.hpp"
#include "rondo/catalogue/times.hpp"
#include "rondo/catalogue/upkeep.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/pipeline/halves.hpp"
#include "rondo/pipeline/synthesize.hpp"

namespace rondo::catalogue::test_catalogue {
namespace {

namespace fs = std::filesystem;

/// A ring of four GPUs: the largest sizes are bound by bandwidth, the least by latency.
class CatalogueTest : public testing::Test {
 protected:
  CatalogueTest() {
    std::string pattern = (fs::temp_directory_path() / "rondo-catalogue-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~CatalogueTest() override { fs::remove_all(root_); }

  static std::shared_ptr<const Topology> fabric(const std::string& spec = "ring:gpus=4") {
    return std::make_shared<const Topology>(generate_topology(spec));
  }
  /// 1 MB among 4 GPUs in so many chunks, without local search.
  ProvenSchedule solved(const std::shared_ptr<const Topology>& topology, Collective collective,
                        int chunks) const {
    SolveOptions options;
    options.chunks = chunks;
    options.improve_work = 0;
    return synthesize({topology, make_demand(collective, 1e6, 4, 1), options}, {*alone_}).proven;
  }
  static Series allgather(const Topology& topology) { return {fingerprint(topology), Collective::allgather}; }

  static BuildTask task(const std::shared_ptr<const Topology>& topology) {
    BuildTask task{.topology = topology, .series = {allgather(*topology)}, .sizes = {}};
    task.series.push_back({fingerprint(*topology), Collective::broadcast, GpuId{1}});
    for (double size = 1024; size <= 16e6; size *= 8) task.sizes.push_back(size);
    task.options.solve.improve_work = 1e4;
    return task;
  }

  Folder build_in(const std::string& name, const BuildTask& task) const {
    const Folder folder = Folder::open_or_make(root_ / name);
    folder.add_fabric(*task.topology);
    build(folder, task, {*alone_});
    write_index(folder);
    return folder;
  }

  /// All that a catalogue says, but for how long it took.
  static std::vector<std::string> content(const Folder& folder) {
    std::vector<std::string> lines;
    for (const Series& series : folder.all_series()) {
      const Table table = folder.table(series);
      for (const Cell& cell : table.cells)
        lines.push_back(id_of(series) + to_string(cell.way) + cell.schedule + cell.digest);
      for (const Bin& bin : table.bins) lines.push_back(bin.schedule + std::to_string(bin.to_bytes));
    }
    return lines;
  }

  fs::path root_;
  std::unique_ptr<Communicator> alone_ = make_local_communicator();
};

TEST_F(CatalogueTest, EveryCellIsProvenAndTheBinsCoverAllSizes) {
  const auto topology = fabric();
  const BuildTask asked = task(topology);
  const Folder folder = build_in("a", asked);
  const Verified verified = verify(folder, {*alone_});
  EXPECT_EQ(verified.faults, std::vector<std::string>());
  EXPECT_EQ(verified.cells, 2 * asked.sizes.size());
  for (const Series& series : asked.series) {
    const Table table = folder.table(series);
    ASSERT_FALSE(table.bins.empty());
    EXPECT_EQ(table.bins.front().from_bytes, 0);
    EXPECT_TRUE(std::isinf(table.bins.back().to_bytes));
    for (const Cell& cell : table.cells) {
      EXPECT_GE(cell.gap(), -1e-9);
      int holding = 0;
      for (const Bin& bin : table.bins)
        holding += bin.holds(cell.size_bytes) && bin.schedule == cell.schedule;
      EXPECT_EQ(holding, 1) << cell.size_bytes;
    }
  }
}

TEST_F(CatalogueTest, LookUpGivesTheBinOfASize) {
  const auto topology = fabric();
  const Folder folder = build_in("a", task(topology));
  const Catalogue index(root_ / "a");
  const Table table = folder.table(allgather(*topology));
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const double size = std::exp2(std::uniform_real_distribution<>(0, 40)(random));
    const Found found = index.lookup({Collective::allgather, size});
    const auto bin = std::ranges::find_if(table.bins, [&](const Bin& b) { return b.holds(size); });
    ASSERT_NE(bin, table.bins.end());
    EXPECT_EQ(found.schedule, folder.schedule_path(bin->schedule));
    EXPECT_EQ(found.from_bytes, bin->from_bytes);
    EXPECT_EQ(found.to_bytes, bin->to_bytes);
  }
  expect_error(ExitCode::no_input, {"alltoall", "allgather, broadcast"}, [&] {
    index.lookup({Collective::alltoall, 1e6});
  });
  expect_error(ExitCode::usage, {"-1"}, [&] { index.lookup({Collective::allgather, -1}); });
}

TEST_F(CatalogueTest, AStoppedBuildGoesOnToTheSameCatalogue) {
  const auto topology = fabric();
  const Folder whole = build_in("whole", task(topology));
  const Folder stopped = Folder::open_or_make(root_ / "stopped");
  stopped.add_fabric(*topology);
  std::atomic<bool> interrupt = false;
  const RunContext context{*alone_, [&](const std::string&) { interrupt = true; }, &interrupt};
  expect_error(ExitCode::stopped, {"goes on"}, [&] { build(stopped, task(topology), context); });
  const std::size_t cells = stopped.table(allgather(*topology)).cells.size();
  EXPECT_EQ(cells, 2U);  // those of the first wave
  const BuildSummary rest = [&] { return build(stopped, task(topology), {*alone_}); }();
  EXPECT_EQ(rest.found, 4);
  EXPECT_EQ(content(stopped), content(whole));
}

/// A kill leaves each file whole or absent, or under a temporary name.
TEST_F(CatalogueTest, WhateverFilesAKillLeavesTheCatalogueIsTheSame) {
  const auto topology = fabric();
  const Folder whole = build_in("whole", task(topology));
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "whole")) {
    const bool is_cell = entry.path().string().find("/cells/") != std::string::npos;
    if (entry.is_regular_file() && (is_cell || entry.path().extension() == ".sqlite"))
      files.push_back(fs::relative(entry.path(), root_ / "whole"));
  }
  std::mt19937 random(3);
  for (int kill = 0; kill < 3; ++kill) {
    const std::string name = "killed-" + std::to_string(kill);
    fs::copy(root_ / "whole", root_ / name, fs::copy_options::recursive);
    for (const fs::path& file : files) {
      if (random() % 2 == 0) fs::remove(root_ / name / file);
    }
    write_text_file(root_ / name / "cells/.rondo-half.tmp", "{");
    EXPECT_EQ(content(build_in(name, task(topology))), content(whole));
    EXPECT_EQ(read_text_file(root_ / name / "index.sqlite").size(),
              read_text_file(root_ / "whole/index.sqlite").size());
  }
}

TEST_F(CatalogueTest, DamageIsNamedAndMadeGoodByTheSameBuild) {
  const auto topology = fabric();
  const Folder whole = build_in("whole", task(topology));
  const Cell last = whole.table(allgather(*topology)).cells.back();
  fs::copy(root_ / "whole", root_ / "damaged", fs::copy_options::recursive);
  const Folder damaged = Folder::open(root_ / "damaged");
  fs::remove(damaged.schedule_path(last.schedule));
  const Verified found = verify(damaged, {*alone_});
  ASSERT_FALSE(found.faults.empty());
  EXPECT_NE(found.faults.front().find(last.schedule), std::string::npos) << found.faults.front();
  write_text_file(damaged.cell_path(allgather(*topology), 1024), "{}");
  expect_error(ExitCode::bad_data, {"1024.json"}, [&] { damaged.table(allgather(*topology)); });
  EXPECT_EQ(content(build_in("damaged", task(topology))), content(whole));
}

TEST_F(CatalogueTest, ADamagedIndexIsRefusedAndMadeAnewFromTheOtherFiles) {
  const Folder folder = build_in("a", task(fabric()));
  const std::string bytes = read_text_file(folder.index_path());
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    std::string damaged = bytes;
    if (i % 4 == 0) {
      damaged.resize(random() % bytes.size());
    } else {
      damaged[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    }
    write_text_file(folder.index_path(), damaged);
    try {
      // A byte that means nothing may differ: the rows are those that were written.
      EXPECT_GT(Catalogue(root_ / "a").lookup({Collective::allgather, 5e5}).finish_us, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data) << error.what();
      EXPECT_NE(std::string(error.what()).find("--repair"), std::string::npos);
      ++refused;
    }
  }
  EXPECT_GT(refused, 30);
  write_index(folder);
  EXPECT_EQ(read_text_file(folder.index_path()), bytes);
}

TEST_F(CatalogueTest, OtherVersionsOptionsAndFoldersAreRefused) {
  const auto topology = fabric();
  const Folder folder = build_in("a", task(topology));
  BuildTask other = task(topology);
  other.options.solve.seed = 1;
  expect_error(ExitCode::bad_data, {"seed=0", "seed=1", "--force"}, [&] { build_in("a", other); });
  write_text_file(root_ / "a/catalogue.json",
                  sealed_text({{"format", "rondo-catalogue"}, {"version", 9}, {"producer", "rondo 7"}}));
  expect_error(ExitCode::bad_data, {"version 9", "rondo 7"}, [&] { Folder::open(root_ / "a"); });
  expect_error(ExitCode::no_input, {"catalogue.json"}, [&] { Folder::open(root_ / "none"); });
  write_text_file(root_ / "notes", "x");
  expect_error(ExitCode::cannot_create, {"notes"}, [&] { Folder::open_or_make(root_); });
}

TEST_F(CatalogueTest, CheckAndRefreshOnOtherFigures) {
  const auto topology = fabric();
  const Folder folder = build_in("a", task(topology));
  const auto same = check(folder, fingerprint(*topology), topology, 0.01, {*alone_});
  for (const Checked& cell : same) {
    EXPECT_EQ(cell.verdict, Verdict::kept);
    EXPECT_NEAR(cell.finish_us, cell.finish_before_us, 1e-9 * cell.finish_us);
  }
  const auto slower = std::make_shared<const Topology>(degrade(*topology, 0.1, 0.5, 0));
  const auto cut = std::make_shared<const Topology>(without_links_between(*topology, NodeId{0}, NodeId{1}));
  bool any_stale = false;
  for (const Checked& cell : check(folder, fingerprint(*topology), slower, 0.01, {*alone_}))
    any_stale = any_stale || cell.verdict == Verdict::stale;
  EXPECT_TRUE(any_stale);
  bool any_broken = false;
  for (const Checked& cell : check(folder, fingerprint(*topology), cut, 0.01, {*alone_}))
    any_broken = any_broken || cell.verdict == Verdict::broken;
  EXPECT_TRUE(any_broken);
  for (const auto& changed : {slower, cut}) {
    BuildTask refresh = task(changed);
    refresh.older.clear();
    for (Series series : refresh.series) {
      series.fabric = fingerprint(*topology);
      refresh.older.push_back(folder.table(series));
    }
    const Folder refreshed = build_in("a", refresh);
    const Table table = refreshed.table(allgather(*changed));
    EXPECT_EQ(table.cells.size(), refresh.sizes.size());
    for (const Cell& cell : table.cells) EXPECT_FALSE(cell.is_refused()) << cell.refusal;
  }
  EXPECT_EQ(verify(folder, {*alone_}).faults, std::vector<std::string>());
  expect_error(ExitCode::usage, {"3 fabrics"}, [&] {
    Catalogue(root_ / "a").lookup({Collective::allgather, 1e6});
  });
  const Pruned pruned = prune(folder, {fingerprint(*slower)});
  EXPECT_EQ(pruned.cells, 4 * task(topology).sizes.size());
  write_index(folder);
  EXPECT_EQ(folder.fabrics().size(), 1U);
  EXPECT_EQ(verify(folder, {*alone_}).faults, std::vector<std::string>());
  EXPECT_EQ(prune(folder, {}).schedules, 0U);
}

TEST_F(CatalogueTest, RefreshedSumsEndNoLaterThanWhatTheirHalvesGive) {
  const auto topology = fabric();
  const auto slower = std::make_shared<const Topology>(degrade(*topology, 0.1, 0.5, 0));
  BuildTask all = task(topology);
  all.series.pop_back();
  for (const Collective sums : {Collective::reduce_scatter, Collective::allreduce})
    all.series.push_back({fingerprint(*topology), sums});
  all.sizes = {65536, 1048576};
  const Folder folder = build_in("a", all);
  BuildTask refresh = all;
  refresh.topology = slower;
  for (Series& series : refresh.series) {
    refresh.older.push_back(folder.table(series));
    series.fabric = fingerprint(*slower);
  }
  build_in("a", refresh);
  const auto finish_us = [&](Collective collective, double size_bytes) {
    return folder.made_cell({fingerprint(*slower), collective}, size_bytes)->finish_us;
  };
  for (const double size_bytes : refresh.sizes) {
    const double spreading_us = finish_us(Collective::allgather, size_bytes);
    const double gathering_us = finish_us(Collective::reduce_scatter, size_bytes);
    EXPECT_LE(finish_us(Collective::allreduce, size_bytes), 1.0001 * (spreading_us + gathering_us));
  }
  EXPECT_EQ(verify(folder, {*alone_}).faults, std::vector<std::string>());
}

TEST_F(CatalogueTest, RefreshedCellsOfOneDestinationEachAreNearByWhatWasProvenBefore) {
  const auto topology = fabric();
  const auto slower = std::make_shared<const Topology>(degrade(*topology, 0.1, 0.5, 0));
  BuildTask all = task(topology);
  all.series = {{fingerprint(*topology), Collective::alltoall}};
  all.sizes = {65536, 1048576};
  all.options.solve.improve_work = 1e5;
  const Folder folder = build_in("a", all);
  BuildTask refresh = all;
  refresh.topology = slower;
  refresh.older.push_back(folder.table(all.series.front()));
  refresh.series.front().fabric = fingerprint(*slower);
  build_in("a", refresh);
  BuildTask anew = refresh;
  anew.older.clear();
  const Folder fresh = build_in("b", anew);
  const Series& series = refresh.series.front();
  for (const double size_bytes : refresh.sizes) {
    const auto refreshed = folder.made_cell(series, size_bytes);
    const auto made_anew = fresh.made_cell(series, size_bytes);
    ASSERT_TRUE(refreshed && made_anew);
    EXPECT_LE(refreshed->finish_us, made_anew->finish_us * 1.05) << size_bytes;
  }
  EXPECT_EQ(verify(folder, {*alone_}).faults, std::vector<std::string>());
}

TEST_F(CatalogueTest, AFreshBuildMakesSumsOfTheHalvesThatItHas) {
  const auto topology = std::make_shared<const Topology>(load_topology("ndv2-2"));
  BuildTask all = task(topology);
  all.sizes = {1e9};
  all.series = {{fingerprint(*topology), Collective::allreduce}};
  const Folder alone = build_in("alone", all);
  all.series.push_back({fingerprint(*topology), Collective::reduce_scatter});
  all.series.push_back(allgather(*topology));
  const Folder together = build_in("together", all);
  const auto before = alone.made_cell(all.series.front(), 1e9);
  const auto now = together.made_cell(all.series.front(), 1e9);
  ASSERT_TRUE(before && now);
  EXPECT_EQ(before->engine.find("kept"), std::string::npos) << before->engine;
  EXPECT_EQ(now->engine, "halves/kept");
  EXPECT_EQ(now->way, Way::adapted);
  EXPECT_EQ(now->made_from, together.made_cell(all.series[1], 1e9)->schedule);
  EXPECT_LE(now->finish_us, before->finish_us * (1 + 1e-9));
  EXPECT_EQ(verify(together, {*alone_}).faults, std::vector<std::string>());
}

TEST_F(CatalogueTest, NoScheduleOfTheBinsIsBetterAtACellThanItsOwn) {
  const auto topology = fabric();
  BuildTask asked = task(topology);
  asked.sizes.clear();
  for (double size = 1024; size <= 16e6; size *= 2) asked.sizes.push_back(size);
  const Folder folder = build_in("a", asked);
  for (const Series& series : asked.series) {
    const Table table = folder.table(series);
    for (const Cell& cell : table.cells) {
      for (const Bin& bin : table.bins) {
        const double finish_us = timed_at(folder, series, bin.schedule, cell.size_bytes).schedule.finish_us;
        EXPECT_GE(finish_us, cell.finish_us * (1 - 1e-9)) << cell.size_bytes;
      }
    }
  }
}

TEST_F(CatalogueTest, SumsAreMadeOfHalvesInOtherNumbersOfChunksOrBackwards) {
  const auto topology = fabric();
  const ProvenSchedule spreading = solved(topology, Collective::allgather, 1);
  const ProvenSchedule gathering = solved(topology, Collective::reduce_scatter, 2);
  const Demand whole = make_demand(Collective::allreduce, 1e6, 4, 1);
  const auto both = in_halves(whole, &gathering, &spreading);
  const auto of_spreading = in_halves(whole, nullptr, &spreading);
  const auto of_gathering = in_halves(whole, &gathering, nullptr);
  ASSERT_TRUE(both && of_spreading && of_gathering);
  for (const auto& made : {both, of_spreading, of_gathering}) {
    const ReplayResult replayed = replay(*topology, made->demand, made->schedule.sends);
    EXPECT_TRUE(replayed.valid());
    EXPECT_NEAR(replayed.finish_us, made->schedule.finish_us, 1e-9 * replayed.finish_us);
  }
  EXPECT_EQ(of_spreading->demand.num_chunks(), 4U);
  EXPECT_EQ(of_gathering->demand.num_chunks(), 8U);
  EXPECT_LE(of_spreading->schedule.finish_us, 2.0001 * spreading.schedule.finish_us);
  EXPECT_EQ(both->schedule.finish_us,
            std::min(of_spreading->schedule.finish_us, of_gathering->schedule.finish_us));
  const ProvenSchedule other = solved(topology, Collective::broadcast, 1);
  EXPECT_FALSE(in_halves(whole, nullptr, &other));
  EXPECT_FALSE(in_halves(make_demand(Collective::allgather, 1e6, 4, 1), &gathering, &spreading));
}

// One way around is slow: run backwards, a half goes that way.
TEST_F(CatalogueTest, HalvesInOtherNumbersOfChunksAreCutFiner) {
  TopologyData data = generate_topology("ring", {{"gpus", "4"}, {"bidirectional", "false"}}).data();
  for (int l = 0; l < 4; ++l) {
    Link back = data.links[static_cast<std::size_t>(l)];
    std::swap(back.src, back.dst);
    back.bandwidth_GBps /= 4;
    data.links.push_back(back);
  }
  const auto topology = std::make_shared<const Topology>(data);
  const ProvenSchedule spreading = solved(topology, Collective::allgather, 6);
  const ProvenSchedule gathering = solved(topology, Collective::reduce_scatter, 4);
  const Demand whole = make_demand(Collective::allreduce, 1e6, 4, 1);
  const auto both = in_halves(whole, &gathering, &spreading);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->demand.num_chunks(), 4U * 12);
  EXPECT_LE(both->schedule.finish_us,
            (gathering.schedule.finish_us + spreading.schedule.finish_us) * (1 + 1e-9));
  const ReplayResult replayed = replay(*topology, both->demand, both->schedule.sends);
  EXPECT_TRUE(replayed.valid());
  EXPECT_NEAR(replayed.finish_us, both->schedule.finish_us, 1e-9 * replayed.finish_us);
}

TEST_F(CatalogueTest, MergeTakesWhatIsNewAndRefusesTwoOfTheSame) {
  const auto topology = fabric();
  BuildTask first = task(topology);
  BuildTask second = task(topology);
  first.series.pop_back();
  second.series.erase(second.series.begin());
  const Folder a = build_in("a", first);
  const Folder b = build_in("b", second);
  const Folder whole = build_in("whole", task(topology));
  const Folder merged = Folder::open_or_make(root_ / "merged");
  EXPECT_EQ(merge(merged, a, SameCell::refuse).cells, first.sizes.size());
  EXPECT_EQ(merge(merged, b, SameCell::refuse).cells, first.sizes.size());
  EXPECT_EQ(merge(merged, a, SameCell::refuse).equal, first.sizes.size());
  find_bins(merged, merged.all_series(), {*alone_});
  EXPECT_EQ(content(merged), content(whole));
  first.options.solve.improve_work = 0;
  first.options.solve.chunks = 1;
  const Folder other = build_in("other", first);
  const auto before = content(merged);
  expect_error(ExitCode::bad_data, {"merged", "other", "--same best"},
               [&] { merge(merged, other, SameCell::refuse); });
  EXPECT_EQ(content(merged), before);
  const Merged best = merge(merged, other, SameCell::best);
  EXPECT_GT(best.worse, 0U);
}

}  // namespace
}  // namespace rondo::catalogue::test_catalogue
