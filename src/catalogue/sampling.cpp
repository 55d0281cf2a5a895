#include "rondo/catalogue/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "known_points.hpp"
#include "replaying.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo::catalogue {
namespace {

/// Ranges of sizes of a series, which are dealt over the ranks.
constexpr std::size_t kParts = 8;
/// One of so many sizes is replayed even if the times at other sizes say all.
constexpr std::size_t kReplayedEvery = 32;
/// What rounding may make of times.
constexpr double kRounding = 1e-9;

struct ToldSample {
  std::uint64_t sizes = 0;
  std::uint64_t best = 0;
  double loss = 0;  ///< sum
  double largest_loss = 0;
  double largest_loss_bytes = 0;
  double lookup_s = 0;
  std::uint64_t replays = 0;
  std::uint64_t surprises = 0;
};

/// Ascending, spread evenly by ratio over the cells.
std::vector<double> sizes_of(const Table& table, std::size_t number, std::uint64_t seed) {
  Random random(seed);
  const double least = table.cells.front().size_bytes;
  const double ratio = table.cells.back().size_bytes / least;
  std::vector<double> sizes(number);
  for (double& size_bytes : sizes) size_bytes = std::floor(least * std::pow(ratio, random.unit()));
  std::ranges::sort(sizes);
  return sizes;
}

/// All of 0 .. number - 1, first the middle, then the middles of both sides, and so on: what is found at
/// one size says most about those between it and its neighbours.
std::vector<std::size_t> middles_first(std::size_t number) {
  std::vector<std::size_t> order;
  std::vector<std::pair<std::size_t, std::size_t>> ranges{{0, number}};
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    const auto [first, end] = ranges[r];
    if (first == end) continue;
    const std::size_t middle = (first + end) / 2;
    order.push_back(middle);
    ranges.emplace_back(first, middle);
    ranges.emplace_back(middle + 1, end);
  }
  return order;
}

/// The schedules of a series' bins at any size: what times at other sizes say, and replays where that is not
/// enough.
class SampledTimes {
 public:
  SampledTimes(const Folder& folder, const Table& table, ToldSample& told)
      : fabric_(table.series.fabric), topology_(folder.fabric(fabric_)), replays_(folder), told_(told) {
    for (const Bin& bin : table.bins) known_[bin.schedule];
    const auto add = [&](const std::string& name, double size_bytes, double finish_us) {
      const auto at = known_.find(name);
      if (at != known_.end()) at->second.points.add(size_bytes, finish_us);
    };
    for (const Cell& cell : table.cells) add(cell.schedule, cell.size_bytes, cell.finish_us);
    for (std::size_t i = 0; i + 1 < table.bins.size(); ++i) {
      if (!table.bins[i].border) continue;
      const Border& border = *table.bins[i].border;
      add(table.bins[i].schedule, border.below_bytes, border.below_us);
      add(table.bins[i + 1].schedule, border.above_bytes, border.above_us);
    }
  }

  /// Schedules that may be earlier than `own`, by what is known; the most promising one first.
  std::optional<std::string> rival_of(const std::string& own, double size_bytes) const {
    const double own_us = most_us(own, size_bytes);
    std::optional<std::string> rival;
    double earliest_us = own_us * (1 - kRounding);
    for (const auto& [name, of] : known_) {
      if (name == own || least_us(name, size_bytes) >= earliest_us) continue;
      earliest_us = least_us(name, size_bytes);
      rival = name;
    }
    return rival;
  }
  bool is_exact(const std::string& name, double size_bytes) const {
    return most_us(name, size_bytes) <= least_us(name, size_bytes) * (1 + kRounding);
  }
  double least_us(const std::string& name, double size_bytes) const {
    const Known& of = known_.at(name);
    if (of.never_at.contains(size_bytes)) return kInfinity;
    return of.is_convex || of.points.is_at(size_bytes) ? of.points.least_us(size_bytes) : 0;
  }
  double most_us(const std::string& name, double size_bytes) const {
    const Known& of = known_.at(name);
    if (of.never_at.contains(size_bytes)) return kInfinity;
    return of.is_convex || of.points.is_at(size_bytes) ? of.points.most_us(size_bytes) : kInfinity;
  }

  void replay(const std::string& name, double size_bytes) {
    Known& of = known_.at(name);
    if (of.points.is_at(size_bytes) || of.never_at.contains(size_bytes)) return;
    const double us = replays_.finish_us(name, fabric_, topology_, size_bytes);
    ++told_.replays;
    // An order of sums that does not work at this size may at the next one.
    if (!std::isfinite(us)) {
      of.never_at.insert(size_bytes);
      return;
    }
    // Where passes over sums differ, the times at other sizes say nothing: from then on all are replayed.
    const bool is_as_known = us >= of.points.least_us(size_bytes) * (1 - kSurprise) &&
                             us <= of.points.most_us(size_bytes) * (1 + kSurprise);
    if (of.is_convex && !is_as_known) {
      ++told_.surprises;
      of.is_convex = false;
    }
    of.points.add(size_bytes, us);
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kSurprise = 1e-6;

  struct Known {
    KnownPoints points = {};
    std::set<double> never_at = {};
    bool is_convex = true;
  };

  std::string fabric_;
  std::shared_ptr<const Topology> topology_;
  Replays replays_;
  ToldSample& told_;
  std::map<std::string, Known> known_;
};

/// Counts one size, whose bin has `own`.
void sample_size(SampledTimes& times, const std::string& own, double size_bytes, ToldSample& told) {
  std::optional<std::string> rival;
  while ((rival = times.rival_of(own, size_bytes))) {
    if (!times.is_exact(own, size_bytes)) {
      times.replay(own, size_bytes);
    } else if (!times.is_exact(*rival, size_bytes)) {
      times.replay(*rival, size_bytes);
    } else {
      break;
    }
  }
  ++told.sizes;
  if (!rival) {
    ++told.best;
    return;
  }
  const double own_us = std::min(times.least_us(own, size_bytes), std::numeric_limits<double>::max());
  const double loss = own_us / times.least_us(*rival, size_bytes) - 1;
  told.loss += loss;
  if (loss <= told.largest_loss) return;
  told.largest_loss = loss;
  told.largest_loss_bytes = size_bytes;
}

ToldSample sample_sizes(const Folder& folder, const Table& table, std::span<const double> sizes) {
  const Catalogue index(folder.path());
  ToldSample told;
  SampledTimes times(folder, table, told);
  std::size_t number = 0;
  for (const std::size_t i : middles_first(sizes.size())) {
    const Stopwatch clock;
    const Found found = index.lookup({table.series.collective, sizes[i], table.series.fabric,
                                      table.series.root, table.series.group, table.series.relays});
    told.lookup_s += clock.seconds();
    const std::string own = found.schedule.stem().string();
    if (number++ % kReplayedEvery == 0) times.replay(own, sizes[i]);
    sample_size(times, own, sizes[i], told);
  }
  return told;
}

}  // namespace

Sampled sample(const Folder& folder, std::size_t sizes, std::uint64_t seed, const RunContext& context) {
  std::vector<Table> tables;
  for (const Series& series : folder.all_series()) {
    Table table = folder.table(series);
    std::erase_if(table.cells, [](const Cell& cell) { return cell.is_refused(); });
    if (!table.bins.empty()) tables.push_back(std::move(table));
  }
  std::vector<std::vector<double>> sizes_of_table;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::size_t share = sizes / tables.size() + (i < sizes % tables.size() ? 1 : 0);
    sizes_of_table.push_back(sizes_of(tables[i], share, seed + i));
  }
  // Larger sizes have schedules of more sends.
  std::vector<double> work;
  for (std::size_t part = 0; part < tables.size() * kParts; ++part)
    work.push_back(static_cast<double>(1 + part % kParts));
  const auto outcomes = map_parts(context.communicator, work, [&](std::size_t part) {
    const std::span<const double> all = sizes_of_table[part / kParts];
    const std::size_t first = all.size() * (part % kParts) / kParts;
    const std::size_t end = all.size() * (part % kParts + 1) / kParts;
    return to_message(sample_sizes(folder, tables[part / kParts], all.subspan(first, end - first)));
  });
  Sampled all;
  for (std::size_t part = 0; part < outcomes.size(); ++part) {
    if (outcomes[part].error) throw *outcomes[part].error;
    const auto told = from_message<ToldSample>(outcomes[part].value);
    all.sizes += told.sizes;
    all.best += told.best;
    all.mean_loss += told.loss;
    all.lookup_us += 1e6 * told.lookup_s;
    all.replays += told.replays;
    all.surprises += told.surprises;
    if (told.largest_loss > all.largest_loss) {
      all.largest_loss = told.largest_loss;
      all.largest_loss_bytes = told.largest_loss_bytes;
      all.largest_loss_series = describe(tables[part / kParts].series);
    }
  }
  if (all.sizes > 0) {
    all.mean_loss /= static_cast<double>(all.sizes);
    all.lookup_us /= static_cast<double>(all.sizes);
  }
  return all;
}

}  // namespace rondo::catalogue
