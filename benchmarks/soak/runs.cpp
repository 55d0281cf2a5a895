#include "runs.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

extern char** environ;

namespace rondo::soak {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

nlohmann::json report_of(const fs::path& run) {
  return nlohmann::json::parse(text_of(run / "report.json"), nullptr, false);
}

/// "NAME" and parent of a process, from /proc/PID/stat.
struct ProcessEntry {
  std::string name;
  pid_t parent = 0;
};
ProcessEntry entry_of(pid_t pid) {
  const std::string text = text_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return {};
  ProcessEntry entry{.name = text.substr(open + 1, close - open - 1)};
  entry.parent = static_cast<pid_t>(std::strtol(text.c_str() + close + 4, nullptr, 10));  // ") S 123"
  return entry;
}

}  // namespace

std::size_t Campaign::number(std::size_t least, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>(least, most)(random);
}

Process::Process(const Campaign& campaign, const Words& arguments, int ranks)
    : err_(campaign.folder / "stderr-of-rondo") {
  Words words;
  if (ranks > 1) words = {"mpirun", "--oversubscribe", "-n", std::to_string(ranks)};
  words.push_back(campaign.rondo);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
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
  if (entry_of(pid_).name == "rondo") return {pid_};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const auto pid = static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    if (pid <= 0) continue;
    const ProcessEntry process = entry_of(pid);
    if (process.parent == pid_ && process.name == "rondo") found.push_back(pid);
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
    if (seconds_since(start) > limit_s) return {-1, limit_s, text_of(err_)};
    sleep_s(0.002);
  }
  return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), seconds_since(start),
          text_of(err_)};
}

Ending run(const Campaign& campaign, const Words& arguments, int ranks) {
  return Process(campaign, arguments, ranks).wait();
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

std::string digest_of_run(const fs::path& run) {
  const nlohmann::json report = report_of(run);
  return report.is_object() ? report.value("schedule_digest", "") : "";
}

double figure_of_run(const fs::path& run, const std::string& name) {
  const nlohmann::json report = report_of(run);
  return report.is_object() ? report["figures"].value(name, -1.0) : -1;
}

std::size_t num_round_files(const fs::path& run) {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run / "rounds", ignored)) {
    if (entry.path().filename().string().starts_with("round-")) ++count;
  }
  return count;
}

std::vector<Problem> problems(Campaign& campaign) {
  std::vector<Problem> all = {{.name = "rounds",
                               .arguments = {"--topology", "star:chassis=2,intra=ndv2", "--collective",
                                             "allgather", "--size", "100MB", "--chunks", "2", "--engine",
                                             "rounds", "--decompose", "ncflow", "--round-epochs", "4"}},
                              {.name = "auto",
                               .arguments = {"--topology", "rails:boxes=2,rails=2", "--collective",
                                             "alltoall", "--size", "1KB", "--checkpoint-every", "0"}}};
  for (Problem& problem : all) {
    const fs::path output = campaign.folder / ("undisturbed-" + problem.name);
    const Ending ending =
        run(campaign, joined(joined({"solve"}, problem.arguments), {"--output", output.string()}));
    problem.digest = digest_of_run(output);
    problem.seconds = ending.seconds;
    if (ending.code != 0) throw std::runtime_error(problem.name + ": " + ending.err);
    std::cout << problem.name << ": " << problem.seconds << " s undisturbed, schedule " << problem.digest
              << std::endl;
  }
  return all;
}

bool Findings::expect(bool good, const std::string& what) {
  if (!good) {
    ++count_;
    std::cout << "FINDING: " << what << std::endl;
  }
  return good;
}

}  // namespace rondo::soak
