#include "process_table.hpp"

#include <stdio.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "runs.hpp"

namespace rondo::soak {
namespace {

constexpr const char* kGdb = "timeout 30 gdb -batch -nx -ex 'thread apply all backtrace 25' -p ";

fs::path folder_of(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 4096> part;
  while (pipe && fgets(part.data(), part.size(), pipe.get()) != nullptr) output += part.data();
  return output;
}

/// What is open in it, one a line.
std::string open_files(pid_t pid) {
  std::string text;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_of(pid) / "fd", ignored)) {
    text +=
        "  fd " + entry.path().filename().string() + " " + fs::read_symlink(entry, ignored).string() + "\n";
  }
  return text;
}

}  // namespace

std::vector<ProcessEntry> process_table() {
  std::vector<ProcessEntry> table;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    ProcessEntry process{.pid = static_cast<pid_t>(std::atol(entry.path().filename().c_str()))};
    if (process.pid <= 0) continue;
    const std::string text = text_of(entry.path() / "stat");  // "1 (a name) S 0 1 ..."
    const std::size_t open = text.find('(');
    const std::size_t close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;  // it has ended
    process.name = text.substr(open + 1, close - open - 1);
    std::istringstream(text.substr(close + 1)) >> process.state >> process.parent >> process.group;
    table.push_back(process);
  }
  std::sort(table.begin(), table.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return table;
}

std::string describe_processes(pid_t pid) {
  std::string text;
  std::vector<pid_t> family = {pid};
  for (const ProcessEntry& process : process_table()) {
    const bool is_child = std::find(family.begin(), family.end(), process.parent) != family.end();
    if (process.pid != pid && !is_child && process.group != pid) continue;
    family.push_back(process.pid);
    const std::string number = std::to_string(process.pid);
    text += number + " " + process.name + ", state " + process.state + ", parent " +
            std::to_string(process.parent) + ", group " + std::to_string(process.group) + ", waits in " +
            text_of(folder_of(process.pid) / "wchan") + "\n" + text_of(folder_of(process.pid) / "stack") +
            open_files(process.pid) + output_of(kGdb + number + " 2>/dev/null | grep -E '^(#|Thread)'");
  }
  return text;
}

}  // namespace rondo::soak
