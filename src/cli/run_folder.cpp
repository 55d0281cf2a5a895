#include "run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "input.hpp"
#include "problem.hpp"
#include "report.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/io/user_block.hpp"
#include "verification.hpp"

namespace rondo::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProblem = "problem.json";
constexpr const char* kSchedule = "schedule.h5";
constexpr const char* kReport = "report.json";
constexpr const char* kLock = "lock";
constexpr const char* kRounds = "rounds";

[[noreturn]] void cannot_write(const fs::path& path, const std::string& why) {
  throw Error(ExitCode::cannot_create,
              fmt::format("cannot write to the output folder {}: {}", path.string(), why));
}

Json identity(const Json& json) {
  return json;
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

/// The demand of a schedule has one chunk a contribution where the problem's may be split.
bool same_demand(const Demand& problem, const Demand& schedule) {
  const std::size_t contributions = problem.contributions().size();
  if (problem.collective() != schedule.collective() || problem.size_bytes() != schedule.size_bytes() ||
      schedule.num_chunks() % contributions != 0) {
    return false;
  }
  const Demand split = problem.with_chunks(static_cast<int>(schedule.num_chunks() / contributions));
  for (std::size_t i = 0; i < split.num_chunks(); ++i) {
    const ChunkId c(i);
    const auto a = split.destinations(c);
    const auto b = schedule.destinations(c);
    if (split.origin(c) != schedule.origin(c) || split.bytes(c) != schedule.bytes(c) ||
        split.ready_us(c) != schedule.ready_us(c) || !std::equal(a.begin(), a.end(), b.begin(), b.end())) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string file_text(const Json& json) {
  return format_json(json);
}

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  try {
    make_folders();
    lock();
    check_contents();
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
    if (fs::create_directory(folder, error)) made_.push_back(folder);
    if (error) cannot_write(path_, error.message() + "; choose another --output");
  }
  if (!fs::is_directory(path_)) cannot_write(path_, "it is a file; choose another --output");
  // Root may write anywhere. A folder that nobody is allowed to write to was closed on purpose.
  const fs::perms writable = fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
  if ((fs::status(path_).permissions() & writable) == fs::perms::none) {
    cannot_write(path_, "it is read-only; choose another --output or chmod u+w it");
  }
}

void RunFolder::lock() {
  const fs::path file = path_ / kLock;
  for (;;) {
    lock_ = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (lock_ < 0) cannot_write(path_, fmt::format("{}; choose another --output", std::strerror(errno)));
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      close(std::exchange(lock_, -1));
      cannot_write(path_, "another run is at work in it; wait for it or choose another --output");
    }
    // The run before may have removed the file between our open and our lock: then this lock guards nothing.
    struct stat held = {};
    struct stat there = {};
    if (fstat(lock_, &held) == 0 && stat(file.c_str(), &there) == 0 && held.st_ino == there.st_ino) return;
    close(std::exchange(lock_, -1));
  }
}

void RunFolder::check_contents() const {
  if (fs::exists(path_ / kProblem)) return;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    const bool left_by_a_kill = name.starts_with(".rondo-");  // see write_atomically
    if (name != kSchedule && name != kReport && name != kRounds && name != kLock && !left_by_a_kill) {
      cannot_write(
          path_,
          fmt::format("it has files that are not of a run, such as {}; choose an empty or a new --output",
                      name));
    }
  }
}

void RunFolder::undo() {
  std::error_code ignored;
  if (lock_ >= 0) {
    fs::remove(path_ / kLock, ignored);
    close(std::exchange(lock_, -1));
  }
  // remove() leaves folders that are not empty.
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, ignored);
}

std::optional<Json> RunFolder::finished_report(const Json& problem) const {
  if (!fs::exists(path_ / kProblem)) return std::nullopt;
  const Json there = read_as(path_ / kProblem, identity);
  if (const auto difference = first_difference(there, problem)) {
    throw Error(ExitCode::bad_data, fmt::format("the output folder {} holds another problem: {}; choose "
                                                "another --output, or replace it with --force",
                                                path_.string(), *difference));
  }
  if (!fs::exists(path_ / kReport) || !fs::exists(path_ / kSchedule)) return std::nullopt;
  try {
    return check_run(path_).report;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}; --force solves again", error.what()));
  }
}

void RunFolder::begin(const Json& problem) const {
  fs::remove(path_ / kReport);
  write_text_file(path_ / kProblem, file_text(problem));
}

void RunFolder::write(const Json& problem, const ProvenSchedule& proven, const Json& report) const {
  fs::remove(path_ / kReport);
  const std::string problem_text = file_text(problem);
  write_text_file(path_ / kProblem, problem_text);
  write_schedule_hdf5(path_ / kSchedule, proven, digest_of(problem_text));
  write_text_file(path_ / kReport, file_text(report));
}

CheckedRun check_run(const fs::path& folder) {
  const std::string problem_text = read_text_file(folder / kProblem);
  const Json problem_json = parse_json(problem_text, (folder / kProblem).string());
  const Problem problem = naming_file(folder / kProblem, [&] { return problem_from_json(problem_json); });
  CheckedRun run{load_schedule(folder / kSchedule), read_as(folder / kReport, identity)};
  naming_file(folder / kSchedule, [&] {
    if (verify_user_block(folder / kSchedule).problem_digest != digest_of(problem_text) ||
        topology_to_json(*problem.topology) != topology_to_json(run.proven.topology) ||
        !same_demand(problem.demand, run.proven.demand)) {
      throw Error(ExitCode::bad_data, fmt::format("this schedule is not of the problem in {}", kProblem));
    }
    check_schedule(run.proven);
  });
  naming_file(folder / kReport, [&] { check_report(run.report, run.proven); });
  return run;
}

}  // namespace rondo::cli
