#include "comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/files.hpp"
#include "rondo/pictures/line_plot.hpp"
#include "rondo/pictures/plot_page.hpp"
#include "rondo/pipeline/registry.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

constexpr const char* kFormat = "rondo-comparison";
constexpr double kEqual = 1e-9;  ///< of two finish times, relative
constexpr double kGainsCounted[] = {1.1, 1.5, 2};

using TableRows = std::vector<std::vector<std::string>>;

const Json* result_of(const Json& row, const std::string& engine) {
  for (const Json& result : row.at("results")) {
    if (result.at("engine") == engine) return &result;
  }
  return nullptr;
}

std::optional<double> finish_of(const Json& row, const std::string& engine) {
  const Json* result = result_of(row, engine);
  if (result == nullptr || !result->contains("finish_us")) return std::nullopt;
  return result->at("finish_us").get<double>();
}

/// Once all engines had their turn.
void add_gain(Json& row) {
  std::optional<double> best;
  for (const std::string& engine : compared_engines()) {
    if (!has_result(row, engine)) return;
    const std::optional<double> finish_us = finish_of(row, engine);
    if (engine == "auto" || !finish_us || (best && *finish_us >= *best * (1 - kEqual))) continue;
    best = finish_us;
    row["best_known"] = engine;
  }
  if (best) row["gain"] = *best / *finish_of(row, "auto");
}

std::string collective_of(const Json& row) {
  return row.at("collective").get<std::string>();
}

std::string size_text(const Json& row) {
  return format_size(row.at("size_bytes").get<double>());
}

TableRows table_of(const std::vector<const Json*>& rows) {
  TableRows table{{"collective", "size", "bound us", "auto us", "GB/s", "gap"}};
  for (const std::string& engine : compared_engines()) {
    if (engine != "auto") table.front().push_back(engine);
  }
  table.front().insert(table.front().end(), {"best", "gain"});
  for (const Json* row : rows) {
    const double bound_us = row->at("lower_bound_us").get<double>();
    const Json& found = *result_of(*row, "auto");
    table.push_back({collective_of(*row), size_text(*row), fmt::format("{:.6g}", bound_us),
                     fmt::format("{:.6g}", found.at("finish_us").get<double>()),
                     fmt::format("{:.4g}", found.at("algorithm_bandwidth_GBps").get<double>()),
                     fmt::format("{:.2f} %", 100 * found.at("gap").get<double>())});
    for (const std::string& engine : compared_engines()) {
      if (engine == "auto") continue;
      const std::optional<double> finish_us = finish_of(*row, engine);
      table.back().push_back(finish_us ? fmt::format("{:.6g}", *finish_us) : "-");
    }
    const bool known = row->contains("gain");
    table.back().push_back(known ? row->at("best_known").get<std::string>() : "-");
    table.back().push_back(known ? fmt::format("{:.3f}", row->at("gain").get<double>()) : "-");
  }
  return table;
}

/// Why algorithms have no figure, each reason once.
std::vector<std::string> refusals(const std::vector<const Json*>& rows) {
  std::vector<std::string> sentences;
  std::set<std::string> said;
  for (const Json* row : rows) {
    for (const Json& result : row->at("results")) {
      if (!result.contains("refused")) continue;
      const std::string sentence =
          fmt::format("{}: {}", collective_of(*row), result.at("refused").get<std::string>());
      if (said.insert(sentence).second) sentences.push_back(sentence);
    }
  }
  return sentences;
}

/// "over the best known algorithm: ..."
std::string gains(const std::vector<const Json*>& rows) {
  std::string text;
  std::size_t known = 0;
  for (const double least : kGainsCounted) {
    const auto above = std::ranges::count_if(rows, [&](const Json* row) {
      return row->contains("gain") && row->at("gain").get<double>() > least;
    });
    text += fmt::format("{}above {} in {}", text.empty() ? "" : ", ", least, above);
  }
  for (const Json* row : rows) known += row->contains("gain") ? 1 : 0;
  return fmt::format("Gain of auto over the best known algorithm: {} of {} rows", text, known);
}

std::vector<pictures::Plot> plots_of(const std::string& collective, const std::vector<const Json*>& all) {
  std::vector<const Json*> rows;
  for (const Json* row : all) {
    if (collective_of(*row) == collective) rows.push_back(row);
  }
  std::ranges::sort(rows, {}, [](const Json* row) { return row->at("size_bytes").get<double>(); });
  std::vector<pictures::PlotLine> finish;
  std::vector<pictures::PlotLine> bandwidth;
  const auto add = [&](const std::string& name, const auto& us_of) {
    finish.push_back({name, {}});
    bandwidth.push_back({name, {}});
    for (const Json* row : rows) {
      const std::optional<double> us = us_of(*row);
      if (!us) continue;
      const double size = row->at("size_bytes").get<double>();
      finish.back().points.emplace_back(size, *us);
      bandwidth.back().points.emplace_back(size, algorithm_bandwidth_GBps(size, *us));
    }
    if (!finish.back().points.empty()) return;
    finish.pop_back();
    bandwidth.pop_back();
  };
  add("bound", [](const Json& row) { return std::optional(row.at("lower_bound_us").get<double>()); });
  for (const std::string& engine : compared_engines())
    add(engine, [&](const Json& row) { return finish_of(row, engine); });
  return {{collective + ": finish time against size", "bytes", "us", std::move(finish)},
          {collective + ": algorithm bandwidth against size", "bytes", "GB/s", std::move(bandwidth)}};
}

/// In the order in which they were asked for.
std::vector<std::string> collectives_of(const std::vector<const Json*>& rows) {
  std::vector<std::string> names;
  for (const Json* row : rows) {
    if (std::ranges::find(names, collective_of(*row)) == names.end()) names.push_back(collective_of(*row));
  }
  return names;
}

}  // namespace

std::vector<std::string> compared_engines() {
  std::vector<std::string> names{"auto"};
  for (const EngineInfo& engine : engine_registry()) {
    if (engine.is_known_algorithm) names.push_back(engine.name);
  }
  return names;
}

Json new_comparison(const Topology& topology, const Json& options) {
  return {{"format", kFormat},
          {"version", 1},
          {"producer", producer()},
          {"topology", topology.name()},
          {"topology_digest", digest_of(topology_to_json(topology).dump())},
          {"gpus", topology.num_gpus()},
          {"options", options},
          {"rows", Json::array()}};
}

Json read_comparison(const std::string& text, const std::string& path, const Json& wanted) {
  Json found = parse_sealed_json(text, path);
  for (const auto& [key, value] : wanted.items()) {
    if (key == "rows" || (found.contains(key) && found.at(key) == value)) continue;
    throw Error(ExitCode::bad_data,
                fmt::format("{}: {} is {} there and {} here, so its rows do not count here; name another "
                            "file, or give --force to replace it",
                            path, key, found.contains(key) ? found.at(key).dump() : "missing", value.dump()));
  }
  return found;
}

Json& row_of(Json& comparison, const std::string& collective, double size_bytes) {
  Json& rows = comparison.at("rows");
  for (Json& row : rows) {
    if (collective_of(row) == collective && row.at("size_bytes").get<double>() == size_bytes) return row;
  }
  rows.push_back({{"collective", collective}, {"size_bytes", size_bytes}, {"results", Json::array()}});
  return rows.back();
}

bool has_result(const Json& row, const std::string& engine) {
  return result_of(row, engine) != nullptr;
}

void add_result(Json& row, const std::string& engine, const SynthesisResult& result) {
  const ProvenSchedule& proven = result.proven;
  const double finish_us = proven.schedule.finish_us;
  if (engine == "auto") {
    row["lower_bound_us"] = proven.lower_bound->us;
    row["lower_bound_kind"] = certificate_kind(proven.lower_bound->certificate);
  }
  row.at("results").push_back(
      {{"engine", engine},
       {"finish_us", finish_us},
       {"algorithm_bandwidth_GBps", algorithm_bandwidth_GBps(proven.demand.size_bytes(), finish_us)},
       {"gap", std::max(0.0, finish_us / row.at("lower_bound_us").get<double>() - 1)},
       {"chunks", proven.demand.chunks_per_contribution()},
       {"sends", proven.schedule.sends.size()},
       {"made_by", result.engine}});
  add_gain(row);
}

void add_refusal(Json& row, const std::string& engine, const std::string& reason) {
  row.at("results").push_back({{"engine", engine}, {"refused", reason}});
  add_gain(row);
}

std::string comparison_text(const ShownRows& shown) {
  std::string text = format_table(table_of(shown.rows));
  for (const std::string& sentence : refusals(shown.rows)) text += fmt::format("- {}\n", sentence);
  return fmt::format("{}{}\n", text, gains(shown.rows));
}

std::string comparison_page(const ShownRows& shown) {
  std::vector<pictures::PlotSection> sections;
  for (const std::string& collective : collectives_of(shown.rows)) {
    std::vector<const Json*> rows;
    for (const Json* row : shown.rows) {
      if (collective_of(*row) == collective) rows.push_back(row);
    }
    sections.push_back({collective, table_of(rows), refusals(rows), plots_of(collective, rows)});
  }
  const std::string title =
      fmt::format("{}: collectives on {} GPUs", shown.comparison.at("topology").get<std::string>(),
                  shown.comparison.at("gpus").get<std::size_t>());
  return pictures::html_of(
      title,
      {gains(shown.rows) + ".",
       "Columns of algorithms are finish times in us on the same fabric, each in its best number of chunks. "
       "The bound holds for any schedule. GB/s is size over finish time, of auto.",
       fmt::format("Made by {}.", shown.comparison.at("producer").get<std::string>())},
      sections);
}

std::string comparison_picture(const ShownRows& shown) {
  std::vector<pictures::Plot> plots;
  for (const std::string& collective : collectives_of(shown.rows)) {
    for (pictures::Plot& plot : plots_of(collective, shown.rows)) plots.push_back(std::move(plot));
  }
  return pictures::svg_of(plots);
}

}  // namespace rondo::cli
