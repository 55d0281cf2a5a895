#include "rondo/catalogue/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "replaying.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/stopwatch.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo::catalogue {
namespace {

struct ToldSample {
  std::uint64_t sizes = 0;
  std::uint64_t best = 0;
  double loss = 0;  ///< sum
  double largest_loss = 0;
  double largest_loss_bytes = 0;
  double lookup_s = 0;
};

ToldSample sample_series(const Folder& folder, const Table& table, std::size_t sizes, std::uint64_t seed) {
  const Catalogue index(folder.path());
  const auto topology = folder.fabric(table.series.fabric);
  std::set<std::string> schedules;
  for (const Bin& bin : table.bins) schedules.insert(bin.schedule);
  Random random(seed);
  const double least = table.cells.front().size_bytes;
  const double ratio = table.cells.back().size_bytes / least;
  ToldSample told;
  for (std::size_t i = 0; i < sizes; ++i) {
    const double size_bytes = std::floor(least * std::pow(ratio, random.unit()));
    const Stopwatch clock;
    const Found found = index.lookup({table.series.collective, size_bytes, table.series.fabric,
                                      table.series.root, table.series.group, table.series.relays});
    told.lookup_s += clock.seconds();
    double own_us = 0;
    double best_us = std::numeric_limits<double>::infinity();
    for (const std::string& name : schedules) {
      const double finish_us = replayed_at(name, *folder.schedule(name), *topology, size_bytes).finish_us();
      best_us = std::min(best_us, finish_us);
      if (found.schedule == folder.schedule_path(name)) own_us = finish_us;
    }
    if (!std::isfinite(own_us)) own_us = std::numeric_limits<double>::max();
    if (!std::isfinite(best_us)) continue;
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
  std::vector<double> work;
  for (const Table& table : tables) work.push_back(static_cast<double>(table.bins.size()));
  const auto outcomes = map_parts(context.communicator, work, [&](std::size_t i) {
    const std::size_t share = sizes / tables.size() + (i < sizes % tables.size() ? 1 : 0);
    return to_message(sample_series(folder, tables[i], share, seed + i));
  });
  Sampled all;
  for (const PartOutcome& outcome : outcomes) {
    if (outcome.error) throw *outcome.error;
    const auto told = from_message<ToldSample>(outcome.value);
    all.sizes += told.sizes;
    all.best += told.best;
    all.mean_loss += told.loss;
    all.lookup_us += 1e6 * told.lookup_s;
    if (told.largest_loss > all.largest_loss) {
      all.largest_loss = told.largest_loss;
      all.largest_loss_bytes = told.largest_loss_bytes;
    }
  }
  if (all.sizes > 0) {
    all.mean_loss /= static_cast<double>(all.sizes);
    all.lookup_us /= static_cast<double>(all.sizes);
  }
  return all;
}

}  // namespace rondo::catalogue
