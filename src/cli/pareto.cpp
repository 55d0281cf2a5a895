#include "pareto.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "problem.hpp"
#include "progress.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/pictures/line_plot.hpp"
#include "rondo/pipeline/synthesize.hpp"
#include "run.hpp"
#include "solve_options.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

constexpr int kMostSizes = 8;
constexpr double kSmallestBytes = 64;  ///< a GPU

using Rows = std::vector<std::vector<std::string>>;

std::string against_chunks(const Json& report, std::vector<pictures::Plot>& plots) {
  Rows rows{{"chunks", "sends", "most on a link", "finish us", "gap"}};
  pictures::PlotLine finish{"finish", {}};
  pictures::PlotLine bound{"lower bound", {}};
  const double bound_us = report.at("lower_bound_us").get<double>();
  for (const Json& row : report.at("chunk_trade")) {
    const double finish_us = row.at("finish_us").get<double>();
    rows.push_back({row.at("chunks").dump(), row.at("sends").dump(), row.at("most_sends_on_a_link").dump(),
                    fmt::format("{:.3f}", finish_us),
                    fmt::format("{:.2f} %", 100 * (finish_us / bound_us - 1))});
    finish.points.emplace_back(row.at("chunks").get<double>(), finish_us);
    bound.points.emplace_back(row.at("chunks").get<double>(), bound_us);
  }
  plots.push_back(
      {"Finish time against chunks a contribution", "chunks", "us", {std::move(finish), std::move(bound)}});
  return format_table(rows);
}

/// From small to large; the last one is known.
std::string against_size(const Json& problem, const Json& report, const Communicator& communicator,
                         std::vector<pictures::Plot>& plots) {
  const SolveOptions options = solve_options_from_json(problem.at("options"));
  const double whole = problem.at("size_bytes").get<double>();
  const auto gpus = report.at("gpus").get<double>();
  std::vector<double> sizes;
  for (double size = whole / 4; size >= kSmallestBytes * gpus && sizes.size() + 1 < kMostSizes; size /= 4)
    sizes.push_back(size);
  std::ranges::reverse(sizes);
  Rows rows{{"size bytes", "chunks", "sends", "finish us", "gap", "GB/s"}};
  pictures::PlotLine finish{"finish", {}};
  pictures::PlotLine bound{"lower bound", {}};
  const auto add = [&](double size, int chunks, std::size_t sends, double finish_us, double bound_us) {
    rows.push_back({fmt::format("{:.0f}", size), fmt::format("{}", chunks), fmt::format("{}", sends),
                    fmt::format("{:.3f}", finish_us),
                    fmt::format("{:.2f} %", 100 * (finish_us / bound_us - 1)),
                    fmt::format("{:.3f}", size / finish_us / 1000)});
    finish.points.emplace_back(size, finish_us);
    bound.points.emplace_back(size, bound_us);
  };
  ProgressLine line;
  for (const double size : sizes) {
    Json smaller = problem;
    smaller["size_bytes"] = size;
    const ProblemDocument parsed = problem_from_json(smaller);
    const SynthesisResult result = synthesize({parsed.topology, parsed.demand, options},
                                              {communicator, [&](const std::string& text) {
                                                 line.show(fmt::format("{:.0f} bytes: {}", size, text));
                                               }});
    add(size, result.proven.demand.chunks_per_contribution(), result.proven.schedule.sends.size(),
        result.proven.schedule.finish_us, result.proven.lower_bound->us);
  }
  add(whole, report.at("chunks").get<int>(), report.at("sends").get<std::size_t>(),
      report.at("finish_us").get<double>(), report.at("lower_bound_us").get<double>());
  plots.push_back({"Finish time against size", "bytes", "us", {std::move(finish), std::move(bound)}});
  return format_table(rows);
}

}  // namespace

std::string pareto(const Json& problem, const Json& report, const std::filesystem::path& plot,
                   const Communicator& communicator) {
  std::vector<pictures::Plot> plots;
  std::string text = against_chunks(report, plots);
  text += '\n';
  text += against_size(problem, report, communicator, plots);
  return from_root(communicator, [&] {
    write_text_file(plot, pictures::svg_of(plots));
    return text + fmt::format("plot in {}\n", plot.string());
  });
}

}  // namespace rondo::cli
