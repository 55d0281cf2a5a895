#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "catalogue_options.hpp"
#include "command.hpp"
#include "fabrics.hpp"
#include "interrupt.hpp"
#include "progress.hpp"
#include "rondo/catalogue/catalogue.hpp"
#include "rondo/catalogue/tuned.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/run_lock.hpp"
#include "rondo/tuning/tuner.hpp"
#include "run.hpp"
#include "table.hpp"

namespace rondo::cli {
namespace {

using catalogue::Folder;
using catalogue::Series;
using tuning::Space;
using tuning::Trial;

/// The command that is measured, or the model.
std::string why_command_idle(const Settings& settings) {
  return settings.has("measure") ? "" : "no command is measured; give --measure, or leave it out";
}
std::string why_model_idle(const Settings& settings) {
  return settings.has("measure") ? "the command of --measure is timed, no model; leave it out" : "";
}
std::string why_hyperband_idle(const Settings& settings) {
  return settings.text("hyperband") == "on" ? "" : "--hyperband off uses no brackets; leave it out";
}
std::string why_batch_idle(const Settings& settings) {
  return settings.text("hyperband") == "off" ? "" : "brackets have their own sizes; give --hyperband off too";
}

std::vector<OptionGroup> tune_groups() {
  std::vector<Option> what = series_options();
  what.push_back({"size", "SIZE", "", "as of rondo solve; {size_bytes} in the command"});
  OptionGroup fabric = fabric_of_catalogue(
      {"seed", "N", "0", "of the choice of points, the model's noise and the choice of degraded links"});
  return {
      {"Input", {catalogue_option()}},
      {"What to tune", std::move(what)},
      std::move(fabric),
      {"Space", {{"space", "FILE", "tuccl", "JSON of format rondo-tuning-space, or TuCCL's 3600 points"}}},
      {"Objective",
       {{"measure", "COMMAND", "",
         "for /bin/sh; {NAME} is the value of a parameter, {runs} how often to run (without it: started "
         "anew for each run); its last number is the time (default: a model of an executor)"},
        {"pattern", "REGEX", "", "whose first group is the time; the last line that matches counts",
         why_command_idle},
        {"unit", "us|ms|s", "us", "of that time", why_command_idle},
        {"timeout", "SECONDS", "60", "for each start of the command, then it counts as failed",
         why_command_idle},
        {"noise", "SHARE", "0", "of the model: standard deviation of a run", why_model_idle},
        {"retry-failed", "", "", "measure again what failed before", why_command_idle}}},
      {"Search",
       {{"most-runs", "N", "0", "of all points together; 0: a tenth of the points"},
        {"runs", "N", "4", "of a point that stays to the end"},
        {"sampler", "tpe|random", "tpe", "how points are chosen"},
        {"hyperband", "on|off", "on", "off: every point gets all runs"},
        {"eta", "N", "3", "of a bracket's points one in N stays", why_hyperband_idle},
        {"batch", "N", "8", "points at once", why_batch_idle},
        {"patience", "N", "60", "stops where so many points more gained less than 1 % (TuCCL's rule)"}}},
      {"Output",
       {{"keep", "N", "8", "configurations in the table of the catalogue, the fastest"},
        {"force", "", "", "forget the measurements of another tuning of the same size"}}}};
}

bool is_on(const Settings& settings, const char* name, const char* on, const char* off) {
  const std::string& word = settings.text(name);
  if (word == on) return true;
  if (word == off) return false;
  throw Error(ExitCode::usage, fmt::format("--{} is '{}'; it is {} or {}", name, word, on, off));
}

tuning::TuneOptions read_tune_options(const Settings& settings) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto integer = [&](const char* name, std::int64_t least) {
    return static_cast<int>(settings.integer(name, least, kMost));
  };
  tuning::TuneOptions options{.seed = settings.seed("seed"),
                              .estimator = is_on(settings, "sampler", "tpe", "random"),
                              .hyperband = is_on(settings, "hyperband", "on", "off"),
                              .most_runs = integer("most-runs", 0),
                              .runs = integer("runs", 1),
                              .eta = integer("eta", 2),
                              .batch = integer("batch", 1),
                              .patience = integer("patience", 1)};
  options.check();
  return options;
}

/// Words of the command that stand for the collective and its size.
std::string with_cell(std::string command, const Series& series, double size_bytes) {
  for (const auto& [word, value] :
       {std::pair<std::string, std::string>{"{collective}", std::string(to_string(series.collective))},
        std::pair<std::string, std::string>{"{size_bytes}", fmt::format("{}", std::llround(size_bytes))}}) {
    for (std::size_t at = 0; (at = command.find(word, at)) != std::string::npos; at += value.size())
      command.replace(at, word.size(), value);
  }
  return command;
}

double unit_us(const Settings& settings) {
  const std::string& unit = settings.text("unit");
  if (unit == "us") return 1;
  if (unit == "ms") return 1e3;
  if (unit == "s") return 1e6;
  throw Error(ExitCode::usage, fmt::format("--unit is '{}'; it is us, ms or s", unit));
}

/// The model of an executor that carries out the catalogue's schedule of that size.
tuning::ExecutorModel model_of(const Folder& folder, const Series& series, double size_bytes,
                               const Settings& settings) {
  const catalogue::Catalogue index(folder.path());
  const catalogue::Found found =
      index.lookup({series.collective, size_bytes, series.fabric, series.root, series.group, series.relays});
  const std::size_t gpus =
      series.group.empty() ? folder.fabric(series.fabric)->num_gpus() : series.group.size();
  return {.size_bytes = size_bytes,
          .bandwidth_GBps = algorithm_bandwidth_GBps(found.cell_bytes, found.finish_us),
          .depth = static_cast<int>(std::ceil(std::log2(static_cast<double>(gpus)))),
          .noise = settings.fraction("noise"),
          .seed = settings.seed("seed")};
}

/// What was measured before. Other tunings of that size are in the way without --force.
std::vector<tuning::Record> known_records(const std::filesystem::path& path, const Space& space,
                                          const std::string& about, const Settings& settings) {
  if (!std::filesystem::exists(path) || settings.has("force")) return {};
  std::vector<tuning::Record> records;
  try {
    const Json json = parse_sealed_json(read_text_file(path), path.string());
    records = naming_file(path, [&] { return tuning::records_from_json(json, space, about); });
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_data) throw;
    throw Error(error.code(), fmt::format("{}; --force begins anew", error.what()));
  }
  if (settings.has("retry-failed"))
    std::erase_if(records, [](const tuning::Record& record) { return !record.measured.failure.empty(); });
  return records;
}

std::vector<Trial> fastest(const tuning::Tuning& tuning) {
  std::vector<Trial> trials = tuning.trials;
  std::erase_if(trials, [](const Trial& trial) { return trial.has_failed(); });
  // Few runs flatter.
  std::ranges::sort(trials, {},
                    [](const Trial& trial) { return std::tuple(-trial.runs, trial.time_us, trial.point); });
  return trials;
}

std::string report(const tuning::Tuning& found, const Space& space, std::size_t known) {
  std::size_t failed = 0;
  std::string first_failure;
  for (const Trial& trial : found.trials) {
    if (!trial.has_failed()) continue;
    if (failed++ == 0) first_failure = trial.failure;
  }
  std::string text = fmt::format(
      "best {:.6g} us over {} runs: {}\n{} runs of {} of {} points{}; {}\n", found.best->time_us,
      found.best->runs, space.text(found.best->point), found.runs, found.trials.size(), space.size(),
      known > 0 ? fmt::format(", {} measurements were there", known) : "", found.why_ended);
  if (failed > 0) text += fmt::format("{} points failed; the first: {}\n", failed, first_failure);
  return text;
}

std::string run_tune(const Settings& settings, const Communicator& communicator) {
  const InterruptGuard guard;
  const tuning::TuneOptions options = read_tune_options(settings);
  const std::filesystem::path path = settings.text("path");
  std::optional<RunLock> lock;
  const std::string space_text = from_root(communicator, [&] {
    const std::string& name = settings.text("space");
    const Space space = name == "tuccl"
                            ? tuning::tuccl_space()
                            : read_as(name, [](const Json& json) { return tuning::space_from_json(json); });
    Folder::open(path);
    lock.emplace(path);
    return space.to_json().dump();
  });
  const Space space = tuning::space_from_json(parse_json(space_text, "space"));
  const Folder folder = Folder::open(path);
  const Series series = series_in(folder, settings);
  const double size_bytes = parse_size(settings.text("size"));
  const auto objective =
      settings.has("measure")
          ? make_objective(tuning::CommandObjective{with_cell(settings.text("measure"), series, size_bytes),
                                                    settings.positive("timeout"), unit_us(settings),
                                                    settings.has("pattern") ? settings.text("pattern") : "",
                                                    &guard.flag()},
                           space)
          : make_objective(model_of(folder, series, size_bytes, settings), space);
  const std::string about = objective->text() + "; " + options.text();
  const std::filesystem::path state = folder.tuning_path(series, size_bytes);
  const std::string known_text = from_root(communicator, [&] {
    make_folder(state.parent_path());
    return to_json(space, known_records(state, space, about, settings), about).dump();
  });
  tuning::TuneContext context{communicator, records_from_json(parse_json(known_text, "state"), space, about)};
  const std::size_t num_known = context.known.size();
  context.save = [&](const std::vector<tuning::Record>& records) {
    lock->check();
    write_text_file(state, sealed_text(to_json(space, records, about)));
  };
  ProgressLine line;
  context.progress = [&](const std::string& text) { line.show(text); };
  const tuning::Tuning found = tuning::tune(space, *objective, options, std::move(context));
  const auto keep = static_cast<std::size_t>(settings.integer("keep", 1, 1000));
  return from_root(communicator, [&] {
    catalogue::TunedSize tuned{size_bytes, objective->text()};
    for (const Trial& trial : fastest(found)) {
      if (tuned.configurations.size() < keep)
        tuned.configurations.push_back({space.text(trial.point), trial.time_us, 0});
    }
    lock->check();
    catalogue::write_tuned(folder, series, std::move(tuned));
    return report(found, space, num_known) + fmt::format("in the catalogue for {} at {}\n",
                                                         catalogue::describe(series),
                                                         format_size(size_bytes));
  });
}

std::vector<OptionGroup> tuned_groups() {
  return {{"Input", {catalogue_option()}},
          {"Series", series_options()},
          fabric_of_catalogue(),
          {"Size", {{"size", "SIZE", "", "any size: that of the nearest tuned one counts"}}},
          {"After a call",
           {{"record", "CONFIGURATION", "", "that was used, as it is printed"},
            {"time-us", "T", "", "what the call took", [](const Settings& settings) {
               return std::string(settings.has("record") ? "" : "no --record says of what; leave it out");
             }}}}};
}

std::string run_catalogue_tuned(const Settings& settings) {
  const Folder folder = Folder::open(settings.text("path"));
  const Series series = series_in(folder, settings);
  const double size_bytes = parse_size(settings.text("size"));
  if (settings.has("record")) {
    const RunLock lock(folder.path());
    catalogue::record_call(folder, series, size_bytes, settings.text("record"), settings.positive("time-us"));
  }
  std::vector<catalogue::TunedSize> all = catalogue::read_tuned(folder, series);
  const catalogue::TunedSize& nearest = catalogue::tuned_for(all, series, size_bytes);
  std::vector<std::vector<std::string>> rows{{"configuration", "recent us", "calls"}};
  for (const catalogue::Configuration& one : nearest.configurations)
    rows.push_back({one.values, fmt::format("{:.6g}", one.recent_us), fmt::format("{}", one.calls)});
  return fmt::format("{}\n\ntuned at {} by {}\n{}", catalogue::choose(nearest).values,
                     format_size(nearest.size_bytes), nearest.objective, format_table(rows));
}

}  // namespace

Command tune_command() {
  return {
      .name = "tune",
      .arguments = "CATALOGUE --collective NAME --size SIZE [--measure COMMAND]",
      .summary = "find the executor's configuration (protocol, channels, ...) in few measurements",
      .positional = "path",
      .notes =
          "Measures a tenth of the points at most: those that a tree-structured Parzen estimator chooses, "
          "in brackets\nof Hyperband. Ranks measure side by side: start one where runs would disturb each "
          "other. A tuning that was\nstopped (exit code 75) or killed goes on with the same command. A "
          "measurement that fails, hangs or prints no\nnumber is named and counts as a slow point.\n\n"
          "Examples:\n"
          "  rondo tune ndv2 --collective allgather --size 16MB --measure 'NCCL_PROTO={protocol} "
          "NCCL_BUFFSIZE={buffer_bytes}\n    ./bench.sh {channels} {threads} {runs} {size_bytes}' --timeout "
          "120\n"
          "  rondo tune ndv2 --collective allgather --size 16MB --noise 2%\n",
      .options = tune_groups,
      .run = run_tune};
}

Command catalogue_tuned_command() {
  return {.name = "catalogue tuned",
          .arguments = "DIR --collective NAME --size SIZE [--record CONFIGURATION --time-us T]",
          .summary = "the configuration with the least recent latency; what a call took",
          .positional = "path",
          .notes =
              "Example:\n"
              "  rondo catalogue tuned ndv2 --collective allgather --size 16MB --record "
              "protocol=LL,channels=4,threads=256,buffer_bytes=65536 --time-us 812\n",
          .options = tuned_groups,
          .run = on_root_alone(run_catalogue_tuned)};
}

}  // namespace rondo::cli
