#include "rondo/core/verify.hpp"

#include <fmt/format.h>

#include <cmath>

#include "replaying.hpp"
#include "rondo/catalogue/tuned.hpp"
#include "rondo/catalogue/upkeep.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo::catalogue {
namespace {

using Faults = std::vector<std::string>;

void expect_equal(double found_us, double claimed_us, const std::string& what, Faults& faults) {
  if (times_equal(found_us, claimed_us)) return;
  faults.push_back(fmt::format("{}: {} us replayed, {} us claimed", what, found_us, claimed_us));
}

/// Runs `work`; what it refuses is a fault.
template <class Work>
void gather(const std::string& what, Faults& faults, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_data && error.code() != ExitCode::unavailable) throw;
    faults.push_back(what + ": " + error.what());
  }
}

class SeriesVerifier {
 public:
  SeriesVerifier(const Folder& folder, const Series& series)
      : folder_(folder), table_(folder.table(series)), topology_(folder.fabric(series.fabric)) {}

  Verified verified() {
    gather(id_of(table_.series), result_.faults, [&] { read_tuned(folder_, table_.series); });
    for (const Cell& cell : table_.cells) {
      if (cell.is_refused()) continue;
      ++result_.cells;
      const std::string what = folder_.cell_path(table_.series, cell.size_bytes).string();
      gather(what, result_.faults, [&] { check_cell(cell, what); });
    }
    for (std::size_t i = 0; i + 1 < table_.bins.size(); ++i) {
      ++result_.borders;
      const std::string what =
          fmt::format("{}, border at {} bytes", id_of(table_.series), table_.bins[i].to_bytes);
      gather(what, result_.faults, [&] { check_border(table_.bins[i], table_.bins[i + 1], what); });
    }
    return std::move(result_);
  }

 private:
  Replayed replayed(const std::string& name, double size_bytes) const {
    return replayed_at(name, *folder_.schedule(name), *topology_, size_bytes);
  }

  void check_cell(const Cell& cell, const std::string& what) {
    Replayed there = replayed(cell.schedule, cell.size_bytes);
    if (!there.schedule) throw Error(ExitCode::bad_data, there.why_not);
    ProvenSchedule& proven = *there.schedule;
    const Demand asked = demand_of(table_.series, cell.size_bytes, topology_->num_gpus());
    if (const auto wrong = difference(asked, proven.demand))
      throw Error(ExitCode::bad_data, "its schedule moves other data: " + *wrong);
    proven.lower_bound = cell.bound;
    rondo::verify(proven);
    expect_equal(proven.schedule.finish_us, cell.finish_us, what, result_.faults);
    if (schedule_digest(proven.demand, proven.schedule) != cell.digest)
      result_.faults.push_back(what + ": its schedule has another digest");
  }

  void check_border(const Bin& smaller, const Bin& larger, const std::string& what) {
    if (!smaller.border) throw Error(ExitCode::bad_data, "it has no proof");
    const Border& border = *smaller.border;
    const auto expect = [&](const std::string& name, double size_bytes, double claimed_us) {
      expect_equal(replayed(name, size_bytes).finish_us(), claimed_us, what, result_.faults);
    };
    expect(smaller.schedule, border.below_bytes, border.below_us);
    expect(larger.schedule, border.above_bytes, border.above_us);
    // The other one is not earlier; where it does not work at all, no figure says so.
    for (const auto& [name, size_bytes, least_us] :
         {std::tuple(larger.schedule, border.below_bytes, border.below_us),
          std::tuple(smaller.schedule, border.above_bytes, border.above_us)}) {
      const double finish_us = replayed(name, size_bytes).finish_us();
      if (finish_us < least_us && !times_equal(finish_us, least_us))
        result_.faults.push_back(what + ": the schedule of the other side is earlier");
    }
  }

  const Folder& folder_;
  Table table_;
  std::shared_ptr<const Topology> topology_;
  Verified result_;
};

struct ToldFaults {
  std::uint64_t cells = 0;
  std::uint64_t borders = 0;
  Faults faults = {};
};
auto members_of(SameAs<ToldFaults> auto& told) {
  return std::tie(told.cells, told.borders, told.faults);
}

}  // namespace

Verified verify(const Folder& folder, const RunContext& context) {
  const std::vector<Series> all = folder.all_series();
  const auto outcomes =
      map_parts(context.communicator, std::vector<double>(all.size(), 1), [&](std::size_t i) {
        ToldFaults told;
        gather(id_of(all[i]), told.faults, [&] {
          Verified found = SeriesVerifier(folder, all[i]).verified();
          told.cells = found.cells;
          told.borders = found.borders;
          told.faults = std::move(found.faults);
        });
        return to_message(told);
      });
  Verified result;
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
    ToldFaults told = from_message<ToldFaults>(outcome.value);
    result.cells += told.cells;
    result.borders += told.borders;
    result.faults.insert(result.faults.end(), told.faults.begin(), told.faults.end());
  }
  return result;
}

}  // namespace rondo::catalogue
