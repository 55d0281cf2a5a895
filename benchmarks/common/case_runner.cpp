#include "case_runner.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>

extern char** environ;

namespace rondo::benchmarks {
namespace {

int run(const std::vector<std::string>& command, double* wall_s) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return 127;
  int status = 0;
  waitpid(child, &status, 0);
  if (wall_s) *wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

CaseResult solve_case(const std::filesystem::path& rondo, int ranks,
                      const std::vector<std::string>& arguments) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("rondo-benchmark-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  std::vector<std::string> command{"mpirun",  "-n",       std::to_string(ranks), rondo.string(), "solve",
                                   "--force", "--output", folder.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  CaseResult result;
  result.exit_code = run(command, &result.wall_s);
  if (result.exit_code == 0) {
    std::ifstream(folder / "report.json") >> result.report;
    result.verified = run({rondo.string(), "verify", folder.string()}, nullptr) == 0;
  }
  std::filesystem::remove_all(folder);
  return result;
}

BenchmarkOptions parse_options(int argc, char** argv, const std::string& name) {
  const std::filesystem::path program = std::filesystem::canonical("/proc/self/exe");
  BenchmarkOptions options;
  options.rondo = program.parent_path().parent_path() / "rondo";
  options.json = name + ".json";
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const bool known = option == "--ranks" || option == "--json" || option == "--rondo";
    if (!known || i + 1 == argc) {
      std::cerr << "usage: " << name << " [--ranks N] [--json FILE] [--rondo PROGRAM]\n";
      std::exit(64);
    }
    const std::string value = argv[++i];
    if (option == "--ranks") options.ranks = std::atoi(value.c_str());
    if (option == "--json") options.json = value;
    if (option == "--rondo") options.rondo = value;
  }
  if (options.ranks < 1 || !std::filesystem::exists(options.rondo)) {
    std::cerr << name << ": --ranks has to be at least 1 and " << options.rondo << " has to exist\n";
    std::exit(64);
  }
  return options;
}

void write_results(const BenchmarkOptions& options, const nlohmann::ordered_json& rows) {
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  nlohmann::ordered_json results{
      {"date", date}, {"processor", processor()}, {"ranks", options.ranks}, {"rows", rows}};
  std::ofstream(options.json) << results.dump(1) << '\n';
  std::cout << "\nresults: " << options.json.string() << '\n';
}

}  // namespace rondo::benchmarks
