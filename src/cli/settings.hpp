#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

/// Options: declared once in a table that parsing, --help, --print-config and the messages share.
namespace rondo::cli {

class Settings;

struct Option {
  std::string name;           ///< without dashes
  std::string value;          ///< what stands for its value in --help; empty: a flag
  std::string default_value;  ///< as one would type it; empty: none
  std::string help;           ///< meaning, unit, range
  /// Why it would change nothing beside the other options, and what would be right; empty where it counts.
  std::function<std::string(const Settings& settings)> why_ignored = nullptr;
  bool repeats = false;  ///< may be given several times; its text is then that of all, a line each
};

struct OptionGroup {
  std::string title;
  std::vector<Option> options;
};

/// What the options are set to, as text. Readers throw Error(usage) with value, reason and remedy.
class Settings {
 public:
  Settings(std::vector<OptionGroup> groups, std::string positional, std::map<std::string, std::string> values,
           std::set<std::string> given)
      : groups_(std::move(groups)),
        positional_(std::move(positional)),
        values_(std::move(values)),
        given_(std::move(given)) {}

  /// Given, or set by default. Flags are set when they are "true".
  bool has(const std::string& name) const;
  /// By the command line or --config, even if to its default.
  bool is_given(const std::string& name) const { return given_.count(name) > 0; }
  /// Throws Error(usage) for an option that is given and, as `why_ignored` says, would change nothing.
  void refuse_ignored() const;
  /// The same for one option; an empty reason lets it pass.
  void refuse_ignored(const std::string& name, const std::string& why_ignored) const;
  /// The message for an option without a value tells what it is for.
  const std::string& text(const std::string& name) const;
  /// Of an option that repeats, in the order given; none where it is not set.
  std::vector<std::string> texts(const std::string& name) const;
  std::int64_t integer(const std::string& name, std::int64_t least,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::uint64_t seed(const std::string& name) const;
  /// A finite number > 0.
  double positive(const std::string& name) const;
  /// A finite number >= 0; "1%" is 0.01.
  double fraction(const std::string& name) const;

  /// All that is set, as a configuration file; defaults stand in comments. Throws Error(usage) for a value
  /// that such a file cannot hold.
  std::string to_config() const;

 private:
  const Option& option(const std::string& name) const;
  std::string shown(const std::string& name) const;

  std::vector<OptionGroup> groups_;
  std::string positional_;
  std::map<std::string, std::string> values_;
  std::set<std::string> given_;
};

/// Parses the arguments of one command. `positional` names the option that an argument without dashes sets;
/// empty: none. Where --config names a file, `read_file` gives its text and its settings count where the
/// command line has none. Throws Error(usage) for unknown options (with the nearest known one), repeated ones
/// and missing values.
Settings parse_settings(const std::vector<OptionGroup>& groups, const std::string& positional,
                        const std::vector<std::string>& arguments,
                        const std::function<std::string(const std::string&)>& read_file);

/// The options as --help shows them.
std::string describe_options(const std::vector<OptionGroup>& groups);

/// --config, --print-config and --help: every command has them.
OptionGroup common_options();

}  // namespace rondo::cli
