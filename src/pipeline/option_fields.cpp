#include "option_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rondo {
namespace {

std::string shown(const OptionValue& value) {
  struct Shown {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(std::int64_t whole) const { return std::to_string(whole); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& word) const { return word; }
  };
  return std::visit(Shown{}, value);
}

}  // namespace

std::int64_t whole_of(const OptionValue& value, const std::string& what) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  refuse_value(what, shown(value), "a whole number");
}

double number_of(const OptionValue& value, const std::string& what) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  refuse_value(what, shown(value), "a number");
}

const std::string& word_of(const OptionValue& value, const std::string& what) {
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  refuse_value(what, shown(value), "a word");
}

OptionRange above_zero() {
  return {0, std::numeric_limits<double>::max(), true, "more than 0"};
}

OptionRange zero_or_more() {
  return {0, std::numeric_limits<double>::max(), false, "0 or more"};
}

OptionRange fraction() {
  return {0, std::numeric_limits<double>::max(), false, "0 or more", true};
}

double within(const OptionRange& range, double value, const std::string& what) {
  const bool enough = range.without_least ? value > range.least : value >= range.least;
  if (!enough || !(value <= range.most)) refuse_value(what, shown(value), range.wanted);
  return value;
}

void check_whole(std::int64_t value, std::int64_t least, std::int64_t most, const std::string& what) {
  if (value < least || value > most)
    refuse_value(what, shown(value), fmt::format("a whole number from {} to {}", least, most));
}

OptionValue parse_word(const std::string& text, const std::string&) {
  return text;
}

std::size_t find_choice(const std::string& word, const std::vector<std::string>& names,
                        const std::string& what) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) {
    refuse_value(what, word,
                 fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back()));
  }
  return static_cast<std::size_t>(found - names.begin());
}

OptionField epoch_field() {
  static const std::vector<std::pair<std::string, EpochRule>> kRules{
      {"fastest_link", EpochRule::fastest_link}, {"slowest_link", EpochRule::slowest_link}};
  const auto is_rule = [](const std::string& word) {
    return std::ranges::any_of(kRules, [&](const auto& rule) { return rule.first == word; });
  };
  return {[](const SolveOptions& options) -> OptionValue {
            for (const auto& [name, rule] : kRules) {
              if (rule == options.epochs.rule) return name;
            }
            return options.epochs.tau_us;
          },
          [is_rule](const std::string& text, const std::string& what) -> OptionValue {
            if (is_rule(text)) return text;
            return parse_number(text, what + " (fastest_link, slowest_link or microseconds)");
          },
          [](SolveOptions& options, const OptionValue& value, const std::string& what) {
            for (const auto& [name, rule] : kRules) {
              if (value != OptionValue(name)) continue;
              options.epochs.rule = rule;
              return;
            }
            options.epochs.tau_us = within(above_zero(), number_of(value, what), what);
            options.epochs.rule = EpochRule::fixed;
          }};
}

}  // namespace rondo
