#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "command.hpp"
#include "fabrics.hpp"
#include "problem.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/sketch.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/sketch_files.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/registry.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

std::vector<OptionGroup> sketch_check_option_groups() {
  return problem_options();
}

std::set<std::pair<GpuId, GpuId>> joined_gpus(const Topology& topology) {
  std::set<std::pair<GpuId, GpuId>> pairs;
  const HopTable table(topology);
  for (const Hop& hop : table.hops()) pairs.insert({hop.src, hop.dst});
  return pairs;
}

std::string count_of(std::size_t now, std::size_t before) {
  return fmt::format("{} of {}", now, before);
}

std::string run_sketch_check(const Settings& settings) {
  const std::string& path = settings.text("sketch");
  const ProblemDocument problem = read_problem(settings);
  const Topology whole = whole_fabric(settings);
  const Sketch sketch =
      sketch_from_json(parse_json(read_text_file(path), path), static_cast<int>(whole.num_gpus()));
  const auto before = joined_gpus(whole);
  const auto now = joined_gpus(*problem.topology);
  const auto gpus = gpus_of_nodes(whole, sketch.nodes);
  std::vector<int> node(whole.num_gpus());
  for (std::size_t n = 0; n < gpus.size(); ++n) {
    for (const GpuId g : gpus[n]) node[g.index()] = static_cast<int>(n);
  }
  const auto within = [&](const auto& pairs) {
    return static_cast<std::size_t>(std::ranges::count_if(
        pairs, [&](const auto& pair) { return node[pair.first.index()] == node[pair.second.index()]; }));
  };
  std::string text = fmt::format(
      "{}: {} nodes of {} GPUs\nleft are {} pairs of GPUs that send to each other within a node, {} between "
      "nodes, "
      "{} links\n",
      path, sketch.nodes, gpus.front().size(), count_of(within(now), within(before)),
      count_of(now.size() - within(now), before.size() - within(before)),
      count_of(problem.topology->num_links(), whole.num_links()));
  if (const auto fields = sketch.beyond_links(); !fields.empty())
    text += fmt::format("heeded by engine route alone: {}\n", fmt::join(fields, ", "));
  const auto communicator = make_local_communicator();
  const auto bound_us = [&](std::shared_ptr<const Topology> topology) {
    return rondo::bound({std::move(topology), problem.demand}, {*communicator}).best().us;
  };
  const double with_us = bound_us(problem.topology);
  const double without_us = bound_us(std::make_shared<const Topology>(whole));
  return text + fmt::format("no {} ends before {:.7g} us with it, {:.7g} us without: it costs {:.2f} %\n",
                            to_string(problem.demand.collective()), with_us, without_us,
                            100 * (with_us / without_us - 1));
}

}  // namespace

Command sketch_check_command() {
  return {.name = "sketch check",
          .arguments = "--sketch FILE --topology NAME|FILE|SPEC --collective NAME --size SIZE",
          .summary =
              "what a communication sketch forbids, and what that costs: the lower bound with and without it",
          .positional = "",
          .notes =
              "Exit code 65 with field, value and remedy where a sketch contradicts itself or the fabric.\n\n"
              "Examples:\n"
              "  rondo sketch check --sketch jobs/sketches/ndv2-sk-1.json --profile jobs/profiles/ndv2.json "
              "--profile-chunk 1MB --collective allgather --size 1GB\n",
          .options = sketch_check_option_groups,
          .run = on_root_alone(run_sketch_check)};
}

}  // namespace rondo::cli
