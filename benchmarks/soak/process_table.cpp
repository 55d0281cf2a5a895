#include "process_table.hpp"

#include <stdio.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ios>
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

/// "" for a process that ends meanwhile.
std::string text_of_process(pid_t pid, const char* file) {
  try {
    return text_of(folder_of(pid) / file);
  } catch (const std::ios_base::failure&) {
    return "";
  }
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

/// All processes of now.
std::vector<ProcessEntry> process_table() {
  std::vector<ProcessEntry> table;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    ProcessEntry process{.pid = static_cast<pid_t>(std::atol(entry.path().filename().c_str()))};
    if (process.pid <= 0) continue;
    const std::string text = text_of_process(process.pid, "stat");  // "1 (a name) S 0 1 ..."
    const std::size_t open = text.find('(');
    const std::size_t close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;  // it has ended
    process.name = text.substr(open + 1, close - open - 1);
    std::istringstream(text.substr(close + 1)) >> process.state >> process.parent >> process.group;
    table.push_back(process);
  }
  return table;
}

}  // namespace

std::vector<ProcessEntry> family_of(pid_t pid) {
  std::vector<ProcessEntry> others = process_table();
  std::vector<ProcessEntry> family;
  const auto belongs = [&](const ProcessEntry& process) {
    return process.pid == pid || process.group == pid ||
           std::any_of(family.begin(), family.end(), [&](const auto& p) { return p.pid == process.parent; });
  };
  // Numbers begin again at some point: a child's may be the smaller one.
  for (;;) {
    const auto next = std::find_if(others.begin(), others.end(), belongs);
    if (next == others.end()) break;
    family.push_back(*next);
    others.erase(next);
  }
  std::sort(family.begin(), family.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return family;
}

std::string describe_processes(pid_t pid) {
  std::string text;
  for (const ProcessEntry& process : family_of(pid)) {
    const std::string number = std::to_string(process.pid);
    text += number + " " + process.name + ", state " + process.state + ", parent " +
            std::to_string(process.parent) + ", group " + std::to_string(process.group) + ", waits in " +
            text_of_process(process.pid, "wchan") + "\n" + text_of_process(process.pid, "stack") +
            open_files(process.pid) + output_of(kGdb + number + " 2>/dev/null | grep -E '^(#|Thread)'");
  }
  return text;
}

}  // namespace rondo::soak
