#include "run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>

#include "interrupt.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/round_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/io/sketch_files.hpp"
#include "rondo/io/state_files.hpp"
#include "run_folder.hpp"
#include "scenario_options.hpp"
#include "solve_options.hpp"

namespace rondo::cli {
namespace {

[[noreturn]] void throw_stopped(const Run& run, int cause, const std::string& what) {
  throw Error(ExitCode::stopped, fmt::format("stopped by {}{}; rondo resume {} continues",
                                             InterruptGuard::describe(cause), what, run.folder.string()));
}

/// Collective. Whatever was interrupted is Error(stopped), with what was finished kept in the folder; but
/// SIGINT, a person at the keyboard, is answered with the best schedule there is.
SynthesisResult synthesize_interruptibly(const Run& run, const Problem& problem,
                                         const Communicator& communicator, const RunStore& store,
                                         const InterruptGuard& guard) {
  ProgressLine line;
  const RunContext context{
      communicator, [&](const std::string& text) { line.show(text); }, &guard.flag(), store, run.clock, true};
  const auto cause = [&] { return static_cast<int>(communicator.max(InterruptGuard::cause())); };
  try {
    SynthesisResult result = synthesize(problem, context);
    const auto& limits = result.limits_hit;
    const bool cut_short = std::find(limits.begin(), limits.end(), "interrupted") != limits.end();
    const int signal = cause();
    if (cut_short && signal != SIGINT) {
      throw_stopped(run, signal, fmt::format(", best so far {:.6g} us", result.proven.schedule.finish_us));
    }
    return result;
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable && error.code() != ExitCode::stopped) throw;
    const int signal = cause();
    if (signal == 0) throw;
    if (error.code() == ExitCode::unavailable) throw_stopped(run, signal, " before there was a schedule");
    throw;
  }
}

/// A line a tenant; nothing where nobody shares the fabric.
std::string tenants_of_report(const Json& report) {
  if (!report.contains("tenants")) return "";
  const Json& tenants = report.at("tenants");
  std::string text;
  for (const Json& each : tenants.at("each")) {
    const double start_us = each.at("start_us").get<double>();
    text += fmt::format("tenant {}: finish {:.6g} us, bound {:.6g} us, alone {:.6g} us, slowdown {:.3f}\n",
                        each.at("name").get<std::string>(), each.at("finish_us").get<double>(),
                        start_us + each.at("lower_bound").at("us").get<double>(),
                        start_us + each.at("alone_us").get<double>(), each.at("slowdown").get<double>());
  }
  const double weighted_us = tenants.at("weighted_us").get<double>();
  const double bound_us = tenants.at("weighted_bound_us").get<double>();
  return text + fmt::format("weighted sum {:.6g} us, bound {:.6g} us, gap {:.3f}%\n", weighted_us, bound_us,
                            100 * (weighted_us / bound_us - 1));
}

std::string result_line(const Json& report, const std::filesystem::path& folder) {
  return tenants_of_report(report) + scenarios_of_report(report) +
         fmt::format("{}; in {}: schedule.h5, report.json, problem.json\n",
                     describe(figures_of_report(report)), folder.string());
}

std::string remarks_of(const Json& report) {
  std::string text;
  for (const Json& remark : report.at("remarks")) text += remark.get<std::string>() + "\n";
  for (const Json& limit : report.at("limits_hit")) {
    text += fmt::format("ended by a limit: {}\n", limit.get<std::string>());
  }
  return text;
}

/// From so many on nobody goes back to the states of the plan: the newest round has one before it.
constexpr int kRoundsInsteadOfStates = 2;

void tell(const std::string& line) {
  fmt::print(stderr, "{}\n", line);
}

/// Collective. Runs `read` on every rank; where it throws on one of them, all throw Error(io).
void read_on_all(const Communicator& communicator, const std::function<void()>& read) {
  std::string failure;  // of this rank alone, while the others would wait for it
  try {
    read();
  } catch (const Error& error) {
    failure = error.what();
  }
  for (const Bytes& why : communicator.all_gather(to_bytes(failure))) {
    if (!why.empty()) throw Error(ExitCode::io, to_text(why));
  }
}

/// Collective. What is finished of the run's rounds; every rank reads the files itself. Removes what stands
/// behind.
std::vector<RoundRecord> finished_rounds(const Run& run, const std::string& digest,
                                         const Communicator& communicator) {
  RoundPrefix prefix;
  read_on_all(communicator, [&] { prefix = read_round_files(run.folder, digest); });
  // A damaged file ends the prefix on every rank that reads it; the ranks agree on the shortest.
  const double least = -communicator.max(-static_cast<double>(prefix.rounds.size()));
  prefix.rounds.resize(static_cast<std::size_t>(least));
  on_root(communicator, [&] {
    if (!prefix.stopped_by.empty()) {
      tell(fmt::format("rounds from {} on are solved again: {}", prefix.rounds.size(), prefix.stopped_by));
    }
    remove_round_files(run.folder, static_cast<std::int64_t>(prefix.rounds.size()));
    return Bytes{};
  });
  return std::move(prefix.rounds);
}

/// `locked` is the root's.
StateStore state_store(const Run& run, const std::string& digest, const std::optional<RunFolder>& locked) {
  return {.newest =
              [folder = run.folder, digest](const std::string& name) {
                FoundState found = read_newest_state(folder, name, digest);
                for (const std::string& why : found.damaged) tell("an older state is used: " + why);
                return std::move(found.state);
              },
          .keep =
              [folder = run.folder, digest, &locked](const std::string& name, const Bytes& state) {
                locked->check_lock();
                write_state_file(folder, name, digest, state);
              }};
}

/// Collective. The schedule to begin with, which every rank reads from the folder; null where there is none.
std::shared_ptr<const ProvenSchedule> start_of(const Run& run, const SolveOptions& options,
                                               const Communicator& communicator) {
  if (options.from.empty()) return nullptr;
  std::shared_ptr<const ProvenSchedule> start;
  read_on_all(communicator,
              [&] { start = std::make_shared<const ProvenSchedule>(read_start(run.folder, run.problem)); });
  return start;
}

/// Collective. The states of the plan that rounds begin with.
void remove_states(const Run& run, const Communicator& communicator) {
  on_root(communicator, [&] {
    remove_state_files(run.folder);
    return Bytes{};
  });
}

/// Collective. Where the run keeps what it finishes, with what is there already. `locked` is the root's.
RunStore open_store(const Run& run, bool in_rounds, const Communicator& communicator,
                    const std::optional<RunFolder>& locked) {
  const std::string digest = digest_of(run.problem);
  RunStore store;
  const bool keeps = std::isfinite(run.control.checkpoint_every_s);
  StateStore states = state_store(run, digest, locked);
  if (!keeps) states.keep = {};
  store.checkpoints = std::make_shared<Checkpoints>(std::move(states), run.control.checkpoint_every_s);
  if (!in_rounds) return store;
  store.finished = finished_rounds(run, digest, communicator);
  if (store.finished.size() >= kRoundsInsteadOfStates) remove_states(run, communicator);
  if (!keeps) return store;
  store.finish_round = [&run, digest, &communicator, &locked](const RoundRecord& record) {
    on_root(communicator, [&] {
      locked->check_lock();
      return Bytes{};
    });
    write_round_file(run.folder, record, digest, communicator);
    if (record.round + 1 == kRoundsInsteadOfStates) remove_states(run, communicator);
  };
  return store;
}

/// Null where none is to be heeded beyond its links.
std::shared_ptr<const Sketch> sketch_of(const ProblemDocument& problem) {
  if (problem.sketch.is_null()) return nullptr;
  return std::make_shared<const Sketch>(
      sketch_from_json(problem.sketch, static_cast<int>(problem.topology->num_gpus())));
}

/// On the root. The report where the folder has a result, after which nothing is to be done; otherwise the
/// folder is ready for the run.
std::optional<Json> enter(const Run& run, const Json& problem, const SolveOptions& options,
                          RunFolder& folder) {
  const bool anew = run.unfinished == Unfinished::replace;
  if (!anew) {
    if (std::optional<Json> report = folder.finished_report(problem)) return report;
    folder.check_unfinished(problem);
    if (run.unfinished == Unfinished::refuse && folder.is_unfinished()) {
      throw Error(
          ExitCode::bad_data,
          fmt::format("the output folder {} holds an unfinished run of this problem: --resume (or rondo "
                      "resume) continues it, --force begins again",
                      run.folder.string()));
    }
  }
  const ProblemDocument parsed = problem_from_json(problem);
  std::shared_ptr<const ProvenSchedule> start = run.start;
  if (!start && !options.from.empty())
    start = std::make_shared<const ProvenSchedule>(read_start(run.folder, run.problem));
  check_options({parsed.topology, parsed.demand, options, start, sketch_of(parsed), parsed.scenarios});
  folder.begin(problem, anew, start.get());
  return std::nullopt;
}

/// Collective. Returns the digest of the schedule. `folder` is the root's.
std::string write_schedule(const Json& problem, const SynthesisResult& result,
                           const Communicator& communicator, const std::optional<RunFolder>& folder) {
  const ProvenSchedule& proven = result.proven;
  if (!result.dealt) {
    return from_root(communicator, [&] {
      folder->write_schedule(problem, proven);
      return schedule_digest(proven.demand, proven.schedule);
    });
  }
  return to_text(on_root_with_sends(communicator, proven.schedule.sends, [&](const NextSends& next) {
    return to_bytes(folder->write_schedule(problem, proven, result.dealt->num_sends, next));
  }));
}

/// What writing, reading back and fsync took, of the run.
Json durability(const Json& report) {
  double seconds = 0;
  for (const char* part : {"round_files", "checkpoints", "schedule_file"}) {
    seconds += report.at("wall_parts_s").value(part, 0.0);
  }
  return {{"seconds", seconds}, {"share_of_run", seconds / report.at("wall_s").get<double>()}};
}

/// What no other attempt would do better: the problem or its options are refused.
bool is_refusal(const Error& error) {
  return error.code() == ExitCode::usage || error.code() == ExitCode::bad_data ||
         error.code() == ExitCode::unavailable;
}

}  // namespace

std::string from_root(const Communicator& communicator, const std::function<std::string()>& make) {
  return to_text(on_root(communicator, [&] { return to_bytes(make()); }));
}

std::string solve_run(const Run& run, const Communicator& communicator) {
  const InterruptGuard guard;
  const Json problem = parse_sealed_json(run.problem, (run.folder / "problem.json").string());
  const SolveOptions options = solve_options_from_json(problem.at("options"));
  if (const auto left_s = seconds_left(run.control, communicator)) guard.stop_in(*left_s);

  std::optional<RunFolder> folder;  // on the root
  const std::string found = from_root(communicator, [&] {
    folder.emplace(run.folder, tell);
    const std::optional<Json> report = enter(run, problem, options, *folder);
    return report ? remarks_of(*report) + result_line(*report, run.folder) : "";
  });
  if (!found.empty()) return "already solved (--force solves again)\n" + found;

  try {
    const RunStore store = open_store(run, options.engine == "rounds", communicator, folder);
    ProblemDocument parsed = problem_from_json(problem);
    const SynthesisResult result =
        synthesize_interruptibly(run,
                                 {parsed.topology, std::move(parsed.demand), options,
                                  start_of(run, options, communicator), sketch_of(parsed), parsed.scenarios},
                                 communicator, store, guard);
    const Stopwatch writing;
    const std::string digest = write_schedule(problem, result, communicator, folder);
    const double schedule_s = writing.seconds();
    Json report = make_report(result, digest, communicator, run.clock, parsed.tenants);
    report["wall_parts_s"]["schedule_file"] = schedule_s;
    report["durability"] = durability(report);
    report["resumed_from"] = store.checkpoints->resumed();
    return from_root(communicator, [&] {
      folder->finish(report);
      return remarks_of(report) + result_line(report, run.folder);
    });
  } catch (const Error& error) {
    if (folder && is_refusal(error)) folder->withdraw();
    throw;
  }
}

}  // namespace rondo::cli
