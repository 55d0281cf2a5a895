#include "run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "problem.hpp"
#include "report.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/round_files.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/io/state_files.hpp"
#include "rondo/io/user_block.hpp"
#include "scenario_options.hpp"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProblem = "problem.json";
constexpr const char* kSchedule = "schedule.h5";
constexpr const char* kReport = "report.json";
constexpr const char* kStart = "start.h5";
constexpr const char* kLock = "lock";
constexpr const char* kRounds = "rounds";
constexpr const char* kStates = "states";
constexpr const char* kProducer = "producer";  ///< of problem.json

[[noreturn]] void cannot_write(const fs::path& path, const std::string& why) {
  throw Error(ExitCode::cannot_create,
              fmt::format("cannot write to the output folder {}: {}", path.string(), why));
}

Json without_producer(Json problem) {
  problem.erase(kProducer);
  return problem;
}

Json read_sealed(const fs::path& path) {
  return parse_sealed_json(read_text_file(path), path.string());
}

/// "topology.links[3].latency_us" of the JSON pointer "/topology/links/3/latency_us".
std::string dotted(const std::string& pointer) {
  std::string name;
  for (std::size_t at = 0; at < pointer.size();) {
    const std::size_t next = std::min(pointer.size(), pointer.find('/', at + 1));
    const std::string step = pointer.substr(at + 1, next - at - 1);
    const bool is_index =
        !step.empty() && std::all_of(step.begin(), step.end(), [](char c) { return c >= '0' && c <= '9'; });
    name += is_index ? fmt::format("[{}]", step) : (name.empty() ? "" : ".") + step;
    at = next;
  }
  return name;
}

/// The value at `pointer` for a message, or "absent".
std::string value_at(const Json& json, const Json::json_pointer& pointer) {
  if (!json.contains(pointer)) return "absent";
  constexpr std::size_t kShown = 60;
  const std::string text = json[pointer].dump();
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

/// "options.seed: 0 there, 1 asked" for the first place where two problems differ; nothing where they are
/// equal.
std::optional<std::string> first_difference(const Json& there, const Json& asked) {
  if (there == asked) return std::nullopt;
  const Json patch = Json::diff(there, asked);
  const auto path = patch.front().at("path").get<std::string>();
  const Json::json_pointer pointer(path);
  return fmt::format("{}: {} there, {} asked", dotted(path), value_at(there, pointer),
                     value_at(asked, pointer));
}

/// Whether the schedule moves what the problem asks for, in whatever chunks.
bool same_demand(const Demand& problem, const Demand& schedule) {
  return problem.collective() == schedule.collective() && problem.size_bytes() == schedule.size_bytes() &&
         problem.shape() == schedule.shape() && !difference(problem, schedule);
}

/// Runs `read`; tells with what it refuses how to go on.
template <class Read>
Json naming_remedy(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}; --force solves again", error.what()));
  }
}

}  // namespace

RunFolder::RunFolder(fs::path path, const std::function<void(const std::string&)>& notice)
    : path_(std::move(path)) {
  try {
    make_folders();
    lock_.emplace(path_, notice);
    check_contents();
    remove_temporary_files(path_);
  } catch (...) {
    undo();
    throw;
  }
}

RunFolder::~RunFolder() {
  undo();
}

void RunFolder::make_folders() {
  std::error_code error;
  std::vector<fs::path> missing;
  for (fs::path p = fs::absolute(path_).lexically_normal(); !p.empty() && !fs::exists(p, error);
       p = p.parent_path()) {
    if (p.has_filename()) missing.push_back(p);
  }
  std::reverse(missing.begin(), missing.end());
  for (const fs::path& folder : missing) {
    try {
      if (make_folder(folder)) made_.push_back(folder);
    } catch (const Error& why) {
      cannot_write(path_, std::string(why.what()) + "; choose another --output");
    }
  }
  if (!fs::is_directory(path_)) cannot_write(path_, "it is a file; choose another --output");
  // Root may write anywhere. A folder that nobody is allowed to write to was closed on purpose.
  const fs::perms writable = fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
  if ((fs::status(path_).permissions() & writable) == fs::perms::none) {
    cannot_write(path_, "it is read-only; choose another --output or chmod u+w it");
  }
  // A folder from elsewhere may have links there, and whole files behind them would be replaced and removed.
  for (const char* name : {kRounds, kStates}) {
    if (fs::is_symlink(path_ / name)) {
      cannot_write(path_,
                   fmt::format("its folder {} is a symbolic link, which may lead anywhere; remove it", name));
    }
  }
}

void RunFolder::check_contents() const {
  if (fs::exists(path_ / kProblem)) return;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    if (name != kSchedule && name != kReport && name != kStart && name != kRounds && name != kStates &&
        name != kLock && !is_temporary_name(name)) {
      cannot_write(
          path_,
          fmt::format("it has files that are not of a run, such as {}; choose an empty or a new --output",
                      name));
    }
  }
}

void RunFolder::undo() {
  std::error_code ignored;
  lock_.reset();
  // remove() leaves folders that are not empty.
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, ignored);
}

std::optional<Json> RunFolder::finished_report(const Json& problem) const {
  if (!fs::exists(path_ / kProblem)) return std::nullopt;
  const Json there = naming_remedy([&] { return read_sealed(path_ / kProblem); });
  if (const auto difference = first_difference(without_producer(there), without_producer(problem))) {
    throw Error(ExitCode::bad_data, fmt::format("the output folder {} holds another problem: {}; choose "
                                                "another --output, or replace it with --force",
                                                path_.string(), *difference));
  }
  if (!fs::exists(path_ / kReport) || !fs::exists(path_ / kSchedule)) return std::nullopt;
  return naming_remedy([&] { return check_run(path_).report; });
}

bool RunFolder::is_unfinished() const {
  return fs::exists(path_ / kProblem) && (has_rounds(path_) || !list_states(path_).empty());
}

void RunFolder::check_unfinished(const Json& problem) const {
  if (!is_unfinished()) return;
  const Json there = read_sealed(path_ / kProblem);
  if (const auto difference = first_difference(there, problem)) {
    throw Error(
        ExitCode::bad_data,
        fmt::format("the unfinished run in {} is of another version: {}; only that one can resume it, "
                    "--force begins again",
                    path_.string(), *difference));
  }
}

void RunFolder::begin(const Json& problem, bool anew, const ProvenSchedule* start) {
  const std::string text = sealed_text(problem);
  remove_result();
  if (anew) {
    remove_state_files(path_);
    remove_round_files(path_, 0);
  }
  if (start) {
    write_schedule_hdf5(path_ / kStart, *start, digest_of(text));
  } else {
    remove_file(path_ / kStart);
  }
  wrote_problem_ = !fs::exists(path_ / kProblem);
  if (wrote_problem_ || read_text_file(path_ / kProblem) != text) write_text_file(path_ / kProblem, text);
}

void RunFolder::withdraw() {
  std::error_code ignored;
  if (!wrote_problem_ || is_unfinished()) return;
  fs::remove(path_ / kProblem, ignored);
  fs::remove(path_ / kStart, ignored);
}

void RunFolder::remove_result() const {
  remove_file(path_ / kReport);
}

void RunFolder::write_schedule(const Json& problem, const ProvenSchedule& proven) const {
  check_lock();
  write_schedule_hdf5(path_ / kSchedule, proven, digest_of(sealed_text(problem)));
}

std::string RunFolder::write_schedule(const Json& problem, const ProvenSchedule& proven,
                                      std::size_t num_sends, const SendBlocks& blocks) const {
  check_lock();
  ScheduleDigest digest(proven.demand);
  const auto digested = [&] {
    const std::span<const Send> sends = blocks();
    digest.add(sends);
    return sends;
  };
  // Before it is written, so that the copies of the problem are gone by then.
  const std::string of_problem = digest_of(sealed_text(problem));
  write_schedule_hdf5(path_ / kSchedule, proven, num_sends, digested, of_problem);
  return digest.text();
}

void RunFolder::finish(const Json& report) const {
  check_lock();
  write_text_file(path_ / kReport, sealed_text(report));
  remove_state_files(path_);
}

ProvenSchedule read_start(const fs::path& folder, const std::string& problem_text) {
  const fs::path path = folder / kStart;
  ProvenSchedule start = read_schedule_hdf5(path);
  naming_file(path, [&] {
    if (verify_user_block(path).problem_digest != digest_of(problem_text))
      throw Error(ExitCode::bad_data, "this is not the schedule that the run in problem.json begins with");
    verify(start);
  });
  return start;
}

CheckedRun check_run(const fs::path& folder) {
  const std::string problem_text = read_text_file(folder / kProblem);
  const Json problem_json = parse_sealed_json(problem_text, (folder / kProblem).string());
  const ProblemDocument problem =
      naming_file(folder / kProblem, [&] { return problem_from_json(problem_json); });
  CheckedRun run{read_schedule(folder / kSchedule), read_sealed(folder / kReport)};
  naming_file(folder / kSchedule, [&] {
    if (verify_user_block(folder / kSchedule).problem_digest != digest_of(problem_text) ||
        topology_to_json(*problem.topology) != topology_to_json(run.proven.topology) ||
        !same_demand(problem.demand, run.proven.demand)) {
      throw Error(ExitCode::bad_data, fmt::format("this schedule is not of the problem in {}", kProblem));
    }
    verify(run.proven);
  });
  naming_file(folder / kReport, [&] {
    check_report(run.report, run.proven);
    check_scenarios(run.report, run.proven, problem.scenarios.get(),
                    problem_json.at("options").value("concurrency", kDefaultConcurrency));
  });
  return run;
}

}  // namespace rondo::cli
