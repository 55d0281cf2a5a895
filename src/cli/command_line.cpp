#include "rondo/cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "command.hpp"
#include "interrupt.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/files.hpp"
#include "versions.hpp"

namespace rondo {
namespace cli {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0  done, also when --gap or --time-limit ended it\n"
    "  64 usage: the command line\n"
    "  65 bad or corrupted input, an invalid schedule, another problem in the output folder\n"
    "  66 no such input\n"
    "  69 infeasible, unsupported, beyond a stated cap, or no schedule within the limits\n"
    "  70 a fault of Rondo\n"
    "  73 cannot write\n"
    "  74 other input or output error\n"
    "  75 stopped by a signal or --max-hours; rondo resume continues\n";

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h" || word == "help";
}

bool asks_for_help(const Words& arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const std::string& a) { return a == "--help" || a == "-h"; });
}

/// The commands whose name begins with `prefix`, with their summaries.
std::string list_commands(const std::string& prefix) {
  std::string text;
  for (const Command& command : commands()) {
    if (command.name.starts_with(prefix)) {
      text += fmt::format("  rondo {:<19} {}\n", command.name, command.summary);
    }
  }
  return text;
}

std::string overview() {
  return fmt::format(
      "{}: schedules for collective communication between GPUs, with a proof of how good they are\n\n"
      "Commands (each has --help):\n{}\n"
      "  rondo --version           versions of Rondo and the libraries it uses\n\n"
      "Under MPI: mpirun -n 4 rondo solve ...\n\n"
      "Example:\n"
      "  rondo solve --topology ndv2-2 --collective allgather --size 1GB --output runs/first\n"
      "  rondo verify runs/first\n\n{}",
      producer(), list_commands(""), kExitCodes);
}

std::string help_of(const Command& command, const std::vector<OptionGroup>& groups) {
  return fmt::format("rondo {} {}\n\n{}\n\n{}{}", command.name, command.arguments, command.summary,
                     describe_options(groups), command.notes);
}

std::string first_word(const std::string& command) {
  return command.substr(0, command.find(' '));
}

/// The command that the arguments begin with, which are left without its name.
const Command& take_command(Words& arguments) {
  const std::string first = arguments.front();
  const std::string both = arguments.size() > 1 ? first + " " + arguments[1] : first;
  Words names;
  bool is_group = false;
  for (const Command& command : commands()) {
    if (command.name == first || command.name == both) {
      arguments.erase(arguments.begin(), arguments.begin() + (command.name == both && both != first ? 2 : 1));
      return command;
    }
    is_group = is_group || first_word(command.name) == first;
    names.push_back(command.name);
  }
  if (is_group) {
    throw Error(ExitCode::usage, fmt::format("'{}' is no command{}; there are:\n{}", both,
                                             did_you_mean(both, names), list_commands(first + " ")));
  }
  for (std::string& name : names) name = first_word(name);
  throw Error(ExitCode::usage,
              fmt::format("'{}' is no command{}; rondo --help lists all", first, did_you_mean(first, names)));
}

bool is_group_help(const Words& arguments) {
  if (arguments.size() != 2 || !is_help(arguments[1])) return false;
  const auto& all = commands();
  return std::any_of(all.begin(), all.end(),
                     [&](const Command& c) { return c.name.starts_with(arguments[0] + " "); });
}

/// Collective. Returns what goes to standard output.
std::string execute(Words arguments, const Communicator& communicator) {
  if (arguments.empty()) {
    throw Error(ExitCode::usage, fmt::format("no command given; there are:\n{}", list_commands("")));
  }
  if (is_help(arguments[0])) return overview();
  if (arguments[0] == "--version") return describe_versions();
  if (is_group_help(arguments)) return list_commands(arguments[0] + " ");

  const Command& command = take_command(arguments);
  std::vector<OptionGroup> groups = command.options();
  groups.push_back(common_options());
  if (asks_for_help(arguments)) return help_of(command, groups);
  const auto read_file = [&](const std::string& path) {
    return to_text(on_root(communicator, [&] { return to_bytes(read_text_file(path)); }));
  };
  const Settings settings = parse_settings(groups, command.positional, arguments, read_file);
  settings.refuse_ignored();
  if (settings.has("print-config")) return settings.to_config();
  return command.run(settings, communicator);
}

/// Names in files from elsewhere are shown to a terminal, which obeys control characters.
std::string printable(std::string text) {
  const auto obeyed = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < ' ' && c != '\n' && c != '\t') || byte == 0x7f;
  };
  std::replace_if(text.begin(), text.end(), obeyed, '?');
  return text;
}

/// Collective. Standard output may be a full disk.
void print(const std::string& text, const Communicator& communicator) {
  on_root(communicator, [&] {
    std::cout << printable(text) << std::flush;
    if (!std::cout) throw Error(ExitCode::io, "cannot write to standard output");
    return Bytes{};
  });
}

}  // namespace
}  // namespace cli

void stop_at_signals(const std::vector<std::string>& arguments) {
  // Their folders are whole at every instant.
  const bool is_long = !arguments.empty() && (arguments[0] == "solve" || arguments[0] == "resume" ||
                                              arguments[0] == "catalogue" || arguments[0] == "tune");
  if (is_long) cli::exit_at_signals();
}

int run_command_line(const std::vector<std::string>& arguments, const Communicator& communicator) {
  int code = static_cast<int>(ExitCode::ok);
  try {
    cli::print(cli::execute(arguments, communicator), communicator);
  } catch (const Error& error) {
    if (communicator.is_root()) {
      std::cerr << "rondo: " << cli::printable(error.what()) << '\n';
      if (error.code() == ExitCode::internal) {
        std::cerr << "rondo: this is a fault of Rondo, sorry; please report it with the command line and the "
                     "input\n";
      }
    }
    code = static_cast<int>(error.code());
  }
  cli::ignore_signals();  // the work is done; a late signal must not change the exit code
  return code;
}

}  // namespace rondo
