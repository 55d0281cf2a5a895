#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "command.hpp"
#include "comparison.hpp"
#include "fabrics.hpp"
#include "progress.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/topology_files.hpp"
#include "run.hpp"
#include "solve_options.hpp"

namespace rondo::cli {
namespace {

std::string why_force_ignored(const Settings& settings) {
  return settings.has("json") ? "" : "no file is kept that it would replace; give --json, or leave it out";
}

std::vector<OptionGroup> compare_option_groups() {
  std::vector<OptionGroup> groups = {
      fabric_options(option_of(find_solve_option("seed"))),
      {"Collectives",
       {{"collective", "NAME,...", "allgather,reducescatter,allreduce,alltoall", "named collectives"},
        {"size", "SIZE,...", "", "sizes as of rondo solve: 1KB,1MB,1GB"},
        {"root", "GPU", "0", "of collectives that have one: 0 to GPUs - 1"}}}};
  for (OptionGroup& group : option_groups_of("compare")) groups.push_back(std::move(group));
  groups.push_back(
      {"Output",
       {{"json", "FILE", "",
         "keep all figures in FILE, which is written after each; what FILE holds of the same fabric and "
         "options is not computed again"},
        {"html", "FILE", "", "a page with the tables and plots, that needs nothing else"},
        {"svg", "FILE", "", "the plots: finish and bandwidth against size, of auto, bound and algorithms"},
        {"force", "", "", "replace what --json FILE holds", why_force_ignored}}});
  return groups;
}

std::vector<std::string> words_of(const Settings& settings, const std::string& name) {
  std::vector<std::string> words;
  const std::string& text = settings.text(name);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

template <class T>
void refuse_repeated(const std::vector<T>& values, const T& value, const std::string& option,
                     const std::string& word) {
  if (std::ranges::find(values, value) == values.end()) return;
  throw Error(ExitCode::usage, fmt::format("{} names {} twice; leave one of them out", option, word));
}

struct Asked {
  std::vector<Collective> collectives;
  std::vector<double> sizes;
  GpuId root;
};

Asked read_asked(const Settings& settings) {
  Asked asked;
  bool has_root = false;
  for (const std::string& word : words_of(settings, "collective")) {
    const Collective collective = parse_collective(word);
    if (collective == Collective::custom) {
      throw Error(ExitCode::usage,
                  "--collective names 'custom', which has no size to vary; rondo solve --demand takes it");
    }
    refuse_repeated(asked.collectives, collective, "--collective", word);
    asked.collectives.push_back(collective);
    has_root = has_root || collective->has_root;
  }
  for (const std::string& word : words_of(settings, "size")) {
    const double size = parse_size(word);
    refuse_repeated(asked.sizes, size, "--size", word);
    asked.sizes.push_back(size);
  }
  settings.refuse_ignored("root", has_root ? "" : "no collective here has a root; leave it out");
  asked.root =
      GpuId(static_cast<std::int32_t>(settings.integer("root", 0, std::numeric_limits<std::int32_t>::max())));
  return asked;
}

/// On the root: the fabric, and the comparison to go on with.
Json read_comparison_so_far(const Settings& settings, const Topology& topology, const Json& options) {
  const Json wanted = new_comparison(topology, options);
  if (!settings.has("json") || settings.has("force")) return wanted;
  const std::filesystem::path path = settings.text("json");
  if (!std::filesystem::exists(path)) return wanted;
  return read_comparison(read_text_file(path), path.string(), wanted);
}

/// "engine ring found no ring ...; use --engine auto": here, nobody asks for another engine.
std::string without_advice(std::string reason) {
  for (const char* advice : {"; use --engine", ", or use --engine"})
    reason = reason.substr(0, reason.find(advice));
  return reason;
}

/// Collective. All engines on one collective and size; `keep` after each.
void fill_row(Json& row, const Problem& problem, const Communicator& communicator, ProgressLine& line,
              const std::function<void()>& keep) {
  for (const std::string& engine : compared_engines()) {
    if (has_result(row, engine)) continue;
    const std::string what = fmt::format("{} {}: {}", to_string(problem.demand.collective()),
                                         format_size(problem.demand.size_bytes()), engine);
    const RunContext context{communicator,
                             [&](const std::string& text) { line.show(fmt::format("{}: {}", what, text)); }};
    Problem of_engine = problem;
    of_engine.options.engine = engine;
    try {
      add_result(row, engine, synthesize(of_engine, context));
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable || engine == "auto") throw;
      add_refusal(row, engine, without_advice(error.what()));
    }
    keep();
  }
}

/// Collective. All ranks work on what the root has read.
std::string run_compare(const Settings& settings, const Communicator& communicator) {
  const SolveOptions options = read_solve_options(settings, "compare");
  const Asked asked = read_asked(settings);
  Json described = {{"root", asked.root.value}};
  const Json all = solve_options_to_json(options);
  for (const SolveOption& option : solve_options()) {
    if (std::ranges::find(option.commands, "compare") != option.commands.end())
      described[option.key] = all.at(option.key);
  }
  const std::string text = from_root(communicator, [&] {
    const Topology topology = fabric_of(settings);
    return Json{{"topology", topology_to_json(topology)},
                {"comparison", read_comparison_so_far(settings, topology, described)}}
        .dump();
  });
  Json read = parse_json(text, "problem");
  const auto topology = std::make_shared<const Topology>(topology_from_json(read.at("topology")));
  Json& comparison = read.at("comparison");
  comparison.erase("checksum");
  const auto write = [&](const std::string& option, const std::function<std::string()>& make) {
    if (!settings.has(option)) return;
    on_root(communicator, [&] {
      write_text_file(settings.text(option), make());
      return Bytes{};
    });
  };
  try {
    ProgressLine line;
    for (const Collective collective : asked.collectives) {
      for (const double size : asked.sizes) {
        Json& row = row_of(comparison, std::string(to_string(collective)), size);
        fill_row(row, {topology, make_demand(collective, size, topology->num_gpus(), 1, asked.root), options},
                 communicator, line, [&] { write("json", [&] { return sealed_text(comparison); }); });
      }
    }
    ShownRows shown{comparison, {}};
    for (const Collective collective : asked.collectives) {
      for (const double size : asked.sizes)
        shown.rows.push_back(&row_of(comparison, std::string(to_string(collective)), size));
    }
    write("html", [&] { return comparison_page(shown); });
    write("svg", [&] { return comparison_picture(shown); });
    return comparison_text(shown);
  } catch (const Json::exception& error) {
    if (!settings.has("json")) throw;
    throw Error(ExitCode::bad_data, fmt::format("{}: this is no comparison that Rondo wrote: {}",
                                                settings.text("json"), error.what()));
  }
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .arguments = "--topology NAME|FILE|SPEC --size SIZE,... [options]",
          .summary = "schedules beside the algorithms of NCCL and MPI and the bound, over sizes",
          .positional = "",
          .notes =
              "The gain is the finish time of the best of these algorithms, over that of auto. All run on "
              "the same fabric,\n"
              "under the same model, each in its best number of chunks.\n\n"
              "Example:\n"
              "  rondo compare --topology ndv2-2 --size 1KB,1MB,1GB --json ndv2.json --html ndv2.html\n",
          .options = compare_option_groups,
          .run = run_compare};
}

}  // namespace rondo::cli
