#include "case_runner.hpp"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <utility>

extern char** environ;

namespace rondo::benchmarks {
namespace {

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::uintmax_t bytes_of_files(const std::filesystem::path& folder) {
  std::uintmax_t bytes = 0;
  if (!std::filesystem::is_directory(folder)) return bytes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

constexpr int kTimedOut = 124;  // exit code of timeout(1)

int number_of(const std::string& program, const std::string& option, const std::string& text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least) {
    std::cerr << program << ": " << option << " has to be a number of at least " << least << '\n';
    std::exit(64);
  }
  return value;
}

}  // namespace

int run_command(const std::vector<std::string>& command, double* wall_s, double* cpu_s) {
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
  rusage used{};
  wait4(child, &status, 0, &used);
  if (wall_s) *wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  if (cpu_s) *cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string CaseResult::failure() const {
  if (timed_out) return "timed out";
  if (exit_code != 0) return "exit code " + std::to_string(exit_code);
  return verified ? "" : "not verified";
}

CaseResult solve_case(const std::filesystem::path& rondo, int ranks,
                      const std::vector<std::string>& arguments, int timeout_s,
                      const std::filesystem::path& keep) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("rondo-benchmark-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  std::vector<std::string> command;
  if (timeout_s > 0) {
    // In the foreground Ctrl-C still reaches mpirun; mpirun passes TERM on and gives its ranks time to go.
    command = {"timeout", "--foreground", "--kill-after=30", std::to_string(timeout_s)};
  }
  if (ranks > 0) command.insert(command.end(), {"mpirun", "-n", std::to_string(ranks)});
  command.insert(command.end(), {rondo.string(), "solve", "--force", "--output", folder.string()});
  command.insert(command.end(), arguments.begin(), arguments.end());
  CaseResult result;
  result.exit_code = run_command(command, &result.wall_s, &result.cpu_s);
  // Killed, when TERM was not enough, timeout ends by the same signal.
  result.timed_out = timeout_s > 0 &&
                     (result.exit_code == kTimedOut || (result.exit_code != 0 && result.wall_s > timeout_s));
  result.round_files_bytes = bytes_of_files(folder / "rounds");
  if (result.exit_code == 0) {
    std::ifstream(folder / "report.json") >> result.report;
    result.verified = run_command({rondo.string(), "verify", folder.string()}, nullptr) == 0;
    if (!keep.empty())
      std::filesystem::copy_file(folder / "schedule.h5", keep,
                                 std::filesystem::copy_options::overwrite_existing);
  }
  std::filesystem::remove_all(folder);
  return result;
}

int BenchmarkOptions::number(const std::string& option, int least) const {
  return number_of(name, option, own.at(option), least);
}

std::vector<std::string> every_fabric(const std::filesystem::path& source) {
  std::vector<std::string> fabrics;
  for (const auto& entry : std::filesystem::directory_iterator(source / "jobs" / "topologies"))
    fabrics.push_back(entry.path().stem().string());
  std::sort(fabrics.begin(), fabrics.end());
  for (const char* generated :
       {"rails:boxes=2,rails=2", "rails:boxes=4,rails=2", "torus:dims=8x8", "mesh:dims=8x8"})
    fabrics.emplace_back(generated);
  return fabrics;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

BenchmarkOptions parse_options(int argc, char** argv, const std::string& name,
                               std::map<std::string, std::string> own) {
  const std::filesystem::path program = std::filesystem::canonical("/proc/self/exe");
  BenchmarkOptions options;
  options.name = name;
  options.own = std::move(own);
  options.rondo = program.parent_path().parent_path() / "rondo";
  options.json = name + ".json";
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto mine = options.own.find(option);
    const bool known = option == "--ranks" || option == "--json" || option == "--rondo";
    if ((!known && mine == options.own.end()) || i + 1 == argc) {
      std::cerr << "usage: " << name << " [--ranks N] [--json FILE] [--rondo PROGRAM]";
      for (const auto& [more, value] : options.own) std::cerr << " [" << more << " X]";
      std::cerr << '\n';
      std::exit(64);
    }
    const std::string value = argv[++i];
    if (mine != options.own.end()) mine->second = value;
    if (option == "--ranks") options.ranks = number_of(name, option, value, 1);
    if (option == "--json") options.json = value;
    if (option == "--rondo") options.rondo = value;
  }
  if (!std::filesystem::exists(options.rondo)) {
    std::cerr << name << ": " << options.rondo << " has to exist\n";
    std::exit(64);
  }
  return options;
}

void save_results(const BenchmarkOptions& options, const nlohmann::ordered_json& rows,
                  const nlohmann::ordered_json& more) {
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  nlohmann::ordered_json results{
      {"date", date}, {"processor", processor()}, {"ranks", options.ranks}, {"rows", rows}};
  results.update(more);
  std::ofstream(options.json) << results.dump(1) << '\n';
}

void write_results(const BenchmarkOptions& options, const nlohmann::ordered_json& rows,
                   const nlohmann::ordered_json& more) {
  save_results(options, rows, more);
  std::cout << "\nresults: " << options.json.string() << '\n';
}

}  // namespace rondo::benchmarks
