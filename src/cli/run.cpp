#include "run.hpp"

#include <fmt/format.h>

#include <optional>

#include "interrupt.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/round_files.hpp"
#include "run_folder.hpp"
#include "solve_options.hpp"

namespace rondo::cli {
namespace {

/// Collective. Turns an interruption that left no schedule into the exit code for it.
SynthesisResult synthesize_interruptibly(const Problem& problem, const SolveOptions& options,
                                         const Communicator& communicator, const RoundStore& store) {
  const InterruptGuard guard;
  ProgressLine line;
  const Progress progress = [&](const std::string& text) { line.show(text); };
  try {
    return synthesize(problem.topology, problem.demand, options, communicator, progress, &guard.flag(),
                      store);
  } catch (const Error& error) {
    const bool interrupted = communicator.max(guard.flag().load() ? 1 : 0) > 0;
    if (!interrupted || error.code() != ExitCode::unavailable) throw;
    throw Error(ExitCode::stopped,
                "stopped by a signal before there was a schedule; nothing was written, run it again");
  }
}

std::string result_line(const Json& report, const std::filesystem::path& folder) {
  return fmt::format("{}; in {}: schedule.h5, report.json, problem.json\n",
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

/// Collective. The store of a run that works in rounds, with what is finished there; every rank reads the
/// files itself.
RoundStore open_round_store(const Run& run, const Communicator& communicator) {
  const std::string digest = digest_of(run.problem);
  RoundStore store;
  if (!run.force) {
    RoundPrefix prefix = read_round_files(run.folder, digest);
    // A damaged file ends the prefix on every rank that reads it; the ranks agree on the shortest.
    const double least = -communicator.max(-static_cast<double>(prefix.rounds.size()));
    prefix.rounds.resize(static_cast<std::size_t>(least));
    if (communicator.is_root() && !prefix.stopped_by.empty()) {
      fmt::print(stderr, "rounds from {} on are solved again: {}\n", prefix.rounds.size(), prefix.stopped_by);
    }
    store.finished = std::move(prefix.rounds);
  }
  on_root(communicator, [&] {
    remove_round_files(run.folder, static_cast<std::int64_t>(store.finished.size()));
    return Bytes{};
  });
  store.finish_round = [folder = run.folder, digest, &communicator](const RoundRecord& record) {
    write_round_file(folder, record, digest, communicator);
  };
  return store;
}

}  // namespace

std::string from_root(const Communicator& communicator, const std::function<std::string()>& make) {
  return to_text(on_root(communicator, [&] { return to_bytes(make()); }));
}

std::string solve_run(const Run& run, const Communicator& communicator) {
  const Json problem = parse_json(run.problem, "problem.json");
  const SolveOptions options = solve_options_from_json(problem.at("options"));
  const bool in_rounds = options.engine == "rounds";

  std::optional<RunFolder> folder;  // on the root
  const std::string found = from_root(communicator, [&] {
    folder.emplace(run.folder);
    const std::optional<Json> report = run.force ? std::nullopt : folder->finished_report(problem);
    if (!report && in_rounds) {
      const Problem parsed = problem_from_json(problem);
      check_options(*parsed.topology, parsed.demand, options);
      folder->begin(problem);
    }
    return report ? remarks_of(*report) + result_line(*report, run.folder) : "";
  });
  if (!found.empty()) return "already solved (--force solves again)\n" + found;

  const RoundStore store = in_rounds ? open_round_store(run, communicator) : RoundStore{};
  const SynthesisResult result =
      synthesize_interruptibly(problem_from_json(problem), options, communicator, store);
  const Json report = make_report(result, communicator, run.clock);
  return from_root(communicator, [&] {
    folder->write(problem, result.proven, report);
    return remarks_of(report) + result_line(report, run.folder);
  });
}

}  // namespace rondo::cli
