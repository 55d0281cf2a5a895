#include "rondo/catalogue/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
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
/// What ends later by that much, as its times at other sizes say, is not replayed.
constexpr double kClearlyLater = 1.01;
/// One of so many sizes is replayed even if the times at other sizes say all.
constexpr std::size_t kReplayedEvery = 8;

struct ToldSample {
  std::uint64_t sizes = 0;
  std::uint64_t best = 0;
  double loss = 0;  ///< sum
  double largest_loss = 0;
  double largest_loss_bytes = 0;
  double lookup_s = 0;
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

/// What the cells and the borders say, by schedule.
std::map<std::string, KnownPoints> known_points(const Table& table) {
  std::map<std::string, KnownPoints> known;
  for (const Bin& bin : table.bins) known[bin.schedule];
  const auto add = [&](const std::string& name, double size_bytes, double finish_us) {
    const auto at = known.find(name);
    if (at != known.end()) at->second.add(size_bytes, finish_us);
  };
  for (const Cell& cell : table.cells) add(cell.schedule, cell.size_bytes, cell.finish_us);
  for (std::size_t i = 0; i + 1 < table.bins.size(); ++i) {
    if (!table.bins[i].border) continue;
    const Border& border = *table.bins[i].border;
    add(table.bins[i].schedule, border.below_bytes, border.below_us);
    add(table.bins[i + 1].schedule, border.above_bytes, border.above_us);
  }
  return known;
}

ToldSample sample_sizes(const Folder& folder, const Table& table, std::span<const double> sizes) {
  const Catalogue index(folder.path());
  const auto topology = folder.fabric(table.series.fabric);
  std::map<std::string, KnownPoints> known = known_points(table);
  ToldSample told;
  std::size_t number = 0;
  for (const double size_bytes : sizes) {
    const Stopwatch clock;
    const Found found = index.lookup({table.series.collective, size_bytes, table.series.fabric,
                                      table.series.root, table.series.group, table.series.relays});
    told.lookup_s += clock.seconds();
    const auto is_clearly_best = [&](const Found& own, double bytes) {
      double own_us = std::numeric_limits<double>::infinity();
      double least_us = own_us;
      for (const auto& [name, points] : known) {
        const bool is_own = own.schedule == folder.schedule_path(name);
        (is_own ? own_us : least_us) =
            is_own ? points.most_us(bytes) : std::min(least_us, points.least_us(bytes));
      }
      return std::isfinite(own_us) && least_us >= own_us * kClearlyLater;
    };
    const auto finish_us = [&](const std::string& name) {
      const double us = replayed_at(name, *folder.schedule(name), *topology, size_bytes).finish_us();
      // An order of sums that does not work at this size may at the next one.
      if (std::isfinite(us)) known.at(name).add(size_bytes, us);
      return us;
    };
    if (number++ % kReplayedEvery != 0 && is_clearly_best(found, size_bytes)) {
      ++told.sizes;
      ++told.best;
      continue;
    }
    double own_us = std::numeric_limits<double>::infinity();
    for (const auto& [name, points] : known) {
      if (found.schedule == folder.schedule_path(name)) own_us = finish_us(name);
    }
    double best_us = own_us;
    for (const auto& [name, points] : known) {
      if (found.schedule == folder.schedule_path(name) ||
          points.least_us(size_bytes) >= own_us * kClearlyLater)
        continue;
      best_us = std::min(best_us, finish_us(name));
    }
    if (!std::isfinite(best_us)) continue;
    if (!std::isfinite(own_us)) own_us = std::numeric_limits<double>::max();
    const double loss = own_us / best_us - 1;
    ++told.sizes;
    told.best += is_earlier(best_us, own_us) ? 0 : 1;
    told.loss += loss;
    if (loss > told.largest_loss) {
      told.largest_loss = loss;
      told.largest_loss_bytes = size_bytes;
    }
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
