#include <fmt/format.h>

#include <algorithm>

#include "command.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "rondo/core/units.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/lp_solvers.hpp"
#include "rondo/pipeline/registry.hpp"
#include "run.hpp"
#include "run_folder.hpp"
#include "solve_options.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

std::vector<OptionGroup> bound_option_groups() {
  std::vector<OptionGroup> groups = problem_options();
  for (OptionGroup& group : option_groups_of("bound")) groups.push_back(std::move(group));
  groups.back().options.push_back(
      {"gap", "G", "",
       "of the steady-state flow by columns: end when it is proven to this, 0.001 or 0.1% (default: 1e-6)"});
  groups.push_back({"Output", {{"json", "", "", "print all bounds with their certificates as JSON"}}});
  return groups;
}

std::string why_gap_ignored(const SolveOptions& options, bool is_unicast) {
  if (!is_unicast) return "there is no flow to prove where data has several destinations; leave it out";
  if (find_lp_solver(options.lp_solver).method != LpMethod::program) return "";
  return fmt::format("--lp-solver {} solves the flow to its end; give columns, or leave the gap out",
                     options.lp_solver);
}

/// One line on what the certificate says.
struct Summary {
  std::string operator()(const LatencyCertificate& c) const {
    return fmt::format("latency from GPU {} to GPU {}", c.source.value, c.destination.value);
  }
  std::string operator()(const CutCertificate& c) const {
    return fmt::format("{} must leave {} nodes", format_size(c.bytes), c.nodes.size());
  }
  std::string operator()(const MetricCertificate& c) const {
    if (c.from_us.empty()) return fmt::format("lengths of {} links", c.length.size());
    return fmt::format("lengths of {} links in {} periods", c.length.size() / c.from_us.size(),
                       c.from_us.size());
  }
  std::string operator()(const PartitionCertificate& c) const {
    return fmt::format("sums must {} {} sets of nodes", c.enter ? "enter" : "leave",
                       1 + *std::ranges::max_element(c.part));
  }
  std::string operator()(const TimeCutCertificate& c) const {
    if (!c.sources.empty()) {
      return fmt::format("contributions of {} GPUs that GPU {} wants, over {} nodes and time",
                         c.sources.size(), c.gpu.value, c.alpha_us.size());
    }
    return fmt::format("what GPU {} {}, over {} nodes and time", c.gpu.value, c.backwards ? "has" : "wants",
                       c.alpha_us.size());
  }
  std::string operator()(const PricesCertificate& c) const {
    return fmt::format("prices of links in {} periods", c.from_us.size());
  }
  std::string operator()(const JointCutsCertificate& c) const {
    return fmt::format("{} time cuts that share the links, in {} periods", c.cuts.size(),
                       c.prices.from_us.size());
  }
  std::string operator()(const MessagePricesCertificate& c) const {
    const std::string of = !c.gpu.valid()
                               ? "all data"
                               : fmt::format("what GPU {} {}", c.gpu.value, c.backwards ? "has" : "wants");
    return fmt::format("prices that messages pay for links in {} periods, of {}", c.prices.from_us.size(),
                       of);
  }
  std::string operator()(const KnowledgeCertificate& c) const {
    return fmt::format("what GPU {} can {} of {} GPUs by when, in {} steps", c.gpu.value,
                       c.backwards ? "be rid of, for each" : "have", c.sources.size(), c.times_us.size() - 1);
  }
};

std::string as_table(const ProblemDocument& problem, const Bounds& bounds) {
  std::vector<std::vector<std::string>> rows = {{"lower bound", "at most", "kind", "certificate"}};
  for (const LowerBound& bound : bounds.all) {
    const double bandwidth = algorithm_bandwidth_GBps(problem.demand.size_bytes(), bound.us);
    rows.push_back({fmt::format("{:.7g} us", bound.us), fmt::format("{:.4g} GB/s", bandwidth),
                    certificate_kind(bound.certificate), std::visit(Summary{}, bound.certificate)});
  }
  std::string text = format_table(rows);
  // Of a program that was solved, and not by columns, which are those of all origins.
  if (const SteadyFlow& steady = *bounds.steady; steady.field && steady.orbits) {
    text +=
        fmt::format("symmetry of about 10^{:.1f} elements: steady-state flow of {} columns instead of {}\n",
                    steady.symmetry.log10_order, steady.columns, steady.all_columns);
  }
  for (const std::string& remark : bounds.remarks) text += remark + "\n";
  if (const auto& metrics = bounds.steady->metrics; metrics.contains("columns_gap")) {
    text += fmt::format("steady-state flow {:.10g} us, proven to {:.2g} by columns: {} masters\n",
                        bounds.steady->field->finish_us, metrics.at("columns_gap"),
                        metrics.at("columns_masters"));
  }
  return text;
}

std::string as_json(const ProblemDocument& problem, const Bounds& bounds) {
  // As in a schedule file, so that one reader serves both.
  ProvenSchedule unsolved{.topology = *problem.topology, .demand = problem.demand, .schedule = {}};
  Json all = Json::array();
  for (const LowerBound& bound : bounds.all) {
    unsolved.lower_bound = bound;
    all.push_back(schedule_to_json(unsolved).at("lower_bound"));
  }
  const Json json = {{"topology", problem.topology->name()},
                     {"collective", to_string(problem.demand.collective())},
                     {"size_bytes", problem.demand.size_bytes()},
                     {"lower_bounds", std::move(all)}};
  return format_json(json);
}

/// Collective. All ranks work on what the root has read.
std::string run_bound(const Settings& settings, const Communicator& communicator) {
  SolveOptions options = read_solve_options(settings, "bound");
  if (settings.has("gap")) options.flow_gap = settings.fraction("gap");
  const std::string text =
      from_root(communicator, [&] { return sealed_text(problem_to_json(read_problem(settings), {})); });
  const ProblemDocument problem = problem_from_json(parse_json(text, "problem"));
  const bool is_unicast = problem.demand.is_unicast();
  refuse_ignored(settings, "bound", options, is_unicast);
  settings.refuse_ignored("gap", why_gap_ignored(options, is_unicast));
  ProgressLine line;
  const RunContext context{communicator, [&](const std::string& progress) { line.show(progress); }};
  const Bounds bounds = rondo::bound({problem.topology, problem.demand, options}, context);
  return settings.has("json") ? as_json(problem, bounds) : as_table(problem, bounds);
}

}  // namespace

Command bound_command() {
  return {.name = "bound",
          .arguments = "--topology NAME|FILE|SPEC --collective NAME --size SIZE [options]",
          .summary = "lower bounds on the finish time, with certificates, without solving",
          .positional = "",
          .notes =
              "No schedule ends earlier than the first bound shown, in any number of chunks.\n\n"
              "Example:\n"
              "  rondo bound --topology ndv2-2 --collective allgather --size 1GB\n",
          .options = bound_option_groups,
          .run = run_bound};
}

}  // namespace rondo::cli
