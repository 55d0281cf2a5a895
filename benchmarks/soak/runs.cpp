#include "runs.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "process_table.hpp"

extern char** environ;

namespace rondo::soak {
namespace {

nlohmann::json report_of(const fs::path& run) {
  return nlohmann::json::parse(text_of(run / "report.json"), nullptr, false);
}

/// Regular files whose names begin so, without those that are being written.
std::size_t count_files(const fs::path& folder, const std::string& beginning) {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(beginning) && !name.starts_with(".")) ++count;
  }
  return count;
}

/// One for each long phase that keeps states.
std::vector<Problem> known_problems() {
  const auto words = [](const std::string& text) {
    std::istringstream stream(text + " --checkpoint-every 0");
    return Words(std::istream_iterator<std::string>(stream), {});
  };
  return {
      {.name = "rounds",
       .arguments = words("--topology star:chassis=2,gpus=4 --collective allgather --size 100MB --chunks 4 "
                          "--engine rounds --start list --decompose ncflow --round-epochs 4")},
      {.name = "search", .arguments = words("--topology amd-1 --collective alltoall --size 1KB")},
      {.name = "improvement",
       .arguments = words("--topology dgx1 --collective allgather --size 1GB --chunks 4")},
      {.name = "columns",
       .arguments = words("--topology rails:boxes=3,rails=2 --collective alltoall --size 1GB --engine flow "
                          "--lp-solver columns")},
      {.name = "pdhg",
       .arguments = words("--topology rails:boxes=2,rails=2 --collective alltoall --size 1GB --engine flow "
                          "--lp-solver pdhg --lp-tolerance 1e-5 --symmetry off"),
       .is_exact = false}};
}

}  // namespace

bool Campaign::next() {
  if (done >= count || (seconds > 0 && seconds_since(start) > seconds)) return false;
  ++done;
  return true;
}

std::size_t Campaign::number(std::size_t least, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>(least, most)(random);
}

Process::Process(const Campaign& campaign, const Words& arguments, int ranks)
    : Process(campaign.folder, joined(ranks > 1 ? Words{RONDO_MPIRUN, "--oversubscribe", "-n",
                                                        std::to_string(ranks), campaign.rondo}
                                                : Words{campaign.rondo},
                                      arguments)) {}

Process::Process(const fs::path& folder, Words words)
    : out_(folder / "output-of-command"), err_(folder / "errors-of-command") {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&pid_, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::runtime_error("cannot start " + words.front());
}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

std::vector<pid_t> Process::ranks() const {
  std::vector<pid_t> found;
  if (pid_ <= 0) return found;
  const std::vector<ProcessEntry> family = family_of(pid_);
  const auto is_rondo = [](const ProcessEntry& p) { return p.name == "rondo" && p.state != 'Z'; };
  for (const ProcessEntry& process : family) {
    const bool reads_for_a_rank = std::any_of(family.begin(), family.end(), [&](const ProcessEntry& other) {
      return other.pid == process.parent && is_rondo(other);
    });
    if (is_rondo(process) && !reads_for_a_rank) found.push_back(process.pid);
  }
  return found;
}

bool Process::running() {
  if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) != 0) pid_ = -1;
  return pid_ > 0;
}

Ending Process::wait(double limit_s) {
  const auto start = Clock::now();
  while (running()) {
    if (seconds_since(start) > limit_s) {
      return {-1, limit_s, text_of(out_), text_of(err_) + "still there:\n" + describe_processes(pid_)};
    }
    sleep_s(0.002);
  }
  return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), seconds_since(start),
          text_of(out_), text_of(err_)};
}

Ending run(const Campaign& campaign, const Words& arguments, int ranks) {
  return Process(campaign, arguments, ranks).wait();
}

void run_tool(const Campaign& campaign, const Words& command) {
  const Ending ending = Process(campaign.folder, command).wait();
  if (ending.code != 0) throw std::runtime_error(command.front() + ": " + ending.err);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_solved(const fs::path& run, const Problem& problem) {
  const nlohmann::json report = report_of(run);
  if (!report.is_object()) return false;
  if (problem.is_exact) return report.value("schedule_digest", "") == problem.digest;
  return std::abs(report.value("finish_us", 0.0) / problem.finish_us - 1) <= 1e-4;
}

double figure_of_run(const fs::path& run, const std::string& name) {
  const nlohmann::json report = report_of(run);
  return report.is_object() ? report["metrics"].value(name, -1.0) : -1;
}

bool went_on_from_state(const fs::path& run) {
  const nlohmann::json report = report_of(run);
  return report.is_object() && report.contains("resumed_from") && !report["resumed_from"].empty();
}

std::size_t num_round_files(const fs::path& run) {
  return count_files(run / "rounds", "round-");
}

std::size_t num_states(const fs::path& run) {
  return count_files(run / "states", "");
}

Problems::Problems(const Campaign& campaign) : campaign_(campaign), all_(known_problems()) {
  std::erase_if(all_, [&](const Problem& p) { return !campaign.only.empty() && p.name != campaign.only; });
  if (all_.empty()) throw std::runtime_error("there is no problem " + campaign.only);
}

fs::path Problems::undisturbed(const Problem& problem) const {
  return campaign_.folder / ("undisturbed-" + problem.name);
}

Problem& Problems::at(int i) {
  Problem& problem = all_[static_cast<std::size_t>(i) % all_.size()];
  if (!problem.digest.empty()) return problem;
  const fs::path output = undisturbed(problem);
  const Ending ending =
      run(campaign_, joined(joined({"solve"}, problem.arguments), {"--output", output.string()}), 2);
  if (ending.code != 0) throw std::runtime_error(problem.name + ": " + ending.err);
  const nlohmann::json report = report_of(output);
  problem.digest = report.at("schedule_digest");
  problem.finish_us = report.at("finish_us");
  problem.seconds = ending.seconds;
  std::cout << problem.name << ": " << problem.seconds << " s undisturbed on two ranks, schedule "
            << problem.digest << std::endl;
  return problem;
}

bool says_something(const Campaign& campaign, const Tally& tally, const std::string& outcome) {
  constexpr int kShort = 20;
  const auto entry = tally.counts().find(outcome);
  const double found = entry == tally.counts().end() ? 0 : entry->second;
  return campaign.done < kShort ? found > 0 : found * 3 >= campaign.done;
}

bool Tally::expect(bool good, const std::string& what) {
  if (!good) {
    ++findings_;
    std::cout << "FINDING: " << what << std::endl;
  }
  return good;
}

void Tally::largest(const std::string& what, double value) {
  const auto entry = counts_.try_emplace(what, value).first;
  entry->second = std::max(entry->second, value);
}

}  // namespace rondo::soak
