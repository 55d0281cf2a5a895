#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <regex>

#include "rondo/core/error.hpp"
#include "rondo/tuning/objective.hpp"
#include "shell.hpp"

namespace rondo::tuning {
namespace {

/// The last number of a text: "time 12.5 us" is 12.5.
std::optional<double> last_number(const std::string& text) {
  std::optional<double> found;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_inside =
        at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_');
    double value = 0;
    const auto [end, code] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    const bool is_digit =
        std::isdigit(static_cast<unsigned char>(text[at])) != 0 || text[at] == '-' || text[at] == '.';
    if (code == std::errc() && is_digit && !is_inside) {
      found = value;
      at = static_cast<std::size_t>(end - text.data());
    } else {
      ++at;
    }
  }
  return found;
}

class CommandRun : public Objective {
 public:
  CommandRun(const CommandObjective& command, const Space& space) : options_(command), space_(space) {
    if (command.command.empty()) throw Error(ExitCode::usage, "the command to measure with is empty");
    if (!(command.timeout_s > 0) || !(command.unit_us > 0))
      throw Error(ExitCode::usage, "the timeout and the unit of the time have to be positive");
    parse_braces();
    if (command.pattern.empty()) return;
    try {
      pattern_.emplace(command.pattern);
    } catch (const std::regex_error& error) {
      throw Error(ExitCode::usage,
                  fmt::format("'{}' is no regular expression: {}", command.pattern, error.what()));
    }
    if (pattern_->mark_count() == 0) {
      throw Error(ExitCode::usage, fmt::format("'{}' has no group; put the time in (...)", command.pattern));
    }
  }

  Measured measure(std::size_t point, int, int runs) const override {
    const int starts = takes_runs_ ? 1 : runs;
    double sum_us = 0;
    for (int i = 0; i < starts; ++i) {
      const std::string command = filled_in(point, runs);
      const ShellOutcome outcome = run_shell(command, options_.timeout_s, options_.interrupt);
      if (!outcome.failure.empty()) return {0, fmt::format("'{}': {}", shown(command), outcome.failure)};
      const auto time = time_in(outcome.output);
      if (!time) {
        return {0, fmt::format("'{}': {} in its output, which ends with '{}'", shown(command),
                               pattern_ ? "nothing matches the pattern" : "there is no number",
                               shown(last_line(outcome.output)))};
      }
      if (!(*time > 0) || !std::isfinite(*time))
        return {0, fmt::format("'{}': it printed {}, which is no time", shown(command), *time)};
      sum_us += *time * options_.unit_us;
    }
    return {sum_us / starts};
  }

  std::string text() const override {
    return fmt::format("command '{}', unit {} us, pattern '{}'", options_.command, options_.unit_us,
                       options_.pattern);
  }

 private:
  /// A piece of the command: text, then the value of a parameter.
  struct Piece {
    std::string text;
    std::optional<std::size_t> parameter;
    bool is_runs = false;
  };

  void parse_braces() {
    static const std::regex brace("\\{([A-Za-z0-9_]+)\\}");
    const std::string& all = options_.command;
    std::size_t from = 0;
    for (std::sregex_iterator at(all.begin(), all.end(), brace), end; at != end; ++at) {
      const std::string name = (*at)[1];
      // ${NAME} is the shell's.
      if (at->position() > 0 && all[static_cast<std::size_t>(at->position()) - 1] == '$') continue;
      Piece piece{all.substr(from, static_cast<std::size_t>(at->position()) - from), std::nullopt,
                  name == "runs"};
      if (!piece.is_runs) piece.parameter = parameter(name);
      takes_runs_ = takes_runs_ || piece.is_runs;
      pieces_.push_back(std::move(piece));
      from = static_cast<std::size_t>(at->position() + at->length());
    }
    pieces_.push_back({all.substr(from), std::nullopt});
  }

  std::size_t parameter(const std::string& name) const {
    try {
      return space_.parameter(name);
    } catch (const Error& error) {
      throw Error(ExitCode::usage, fmt::format("the command has '{{{}}}': {}; {{runs}} is how often to run",
                                               name, error.what()));
    }
  }

  std::string filled_in(std::size_t point, int runs) const {
    std::string command;
    for (const Piece& piece : pieces_) {
      command += piece.text;
      if (piece.is_runs) command += std::to_string(runs);
      if (piece.parameter) command += space_.value(point, *piece.parameter);
    }
    return command;
  }

  std::optional<double> time_in(const std::string& output) const {
    if (!pattern_) return last_number(output);
    std::optional<double> found;
    // Line by line: the library's matcher recurses over what it matches.
    for (std::size_t from = 0; from < output.size();) {
      const std::size_t end = std::min(output.find('\n', from), output.size());
      const std::string line = output.substr(from, std::min<std::size_t>(end - from, 4096));
      std::smatch match;
      if (std::regex_search(line, match, *pattern_)) found = last_number(match[1]);
      from = end + 1;
    }
    return found;
  }

  static std::string last_line(std::string output) {
    while (!output.empty() && std::isspace(static_cast<unsigned char>(output.back())) != 0) output.pop_back();
    return output.substr(output.rfind('\n') + 1);
  }
  static std::string shown(const std::string& text) {
    constexpr std::size_t kMost = 200;
    return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
  }

  CommandObjective options_;
  const Space& space_;
  std::vector<Piece> pieces_;
  bool takes_runs_ = false;
  std::optional<std::regex> pattern_;
};

}  // namespace

std::unique_ptr<Objective> make_objective(const CommandObjective& command, const Space& space) {
  return std::make_unique<CommandRun>(command, space);
}

}  // namespace rondo::tuning
