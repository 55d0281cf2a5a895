#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rondo/core/numbers.hpp"
#include "rondo/pipeline/options.hpp"

/// The kinds of members that an option can set. `access` gives the member of (const) SolveOptions.
namespace rondo {

/// Throw Error(usage) where the value is of another kind.
std::int64_t whole_of(const OptionValue& value, const std::string& what);
double number_of(const OptionValue& value, const std::string& what);
const std::string& word_of(const OptionValue& value, const std::string& what);

struct OptionRange {
  double least = 0;
  double most = 0;
  bool without_least = false;  ///< more than the least
  std::string wanted = {};     ///< in words, for messages
  bool in_percent = false;     ///< may be written so
};
OptionRange above_zero();
OptionRange zero_or_more();
/// The same; "1%" is 0.01.
OptionRange fraction();
/// Returns the value. Throws Error(usage).
double within(const OptionRange& range, double value, const std::string& what);
void check_whole(std::int64_t value, std::int64_t least, std::int64_t most, const std::string& what);

/// A whole number from `least` to `most`, or `special`, written as (and in problem.json) `shown`.
struct SpecialWhole {
  std::int64_t value;
  OptionValue shown;
};
template <class Access>
OptionField whole_field(Access access, std::int64_t least, std::int64_t most,
                        std::optional<SpecialWhole> special = std::nullopt) {
  return {[=](const SolveOptions& options) {
            const auto value = static_cast<std::int64_t>(access(options));
            return special && value == special->value ? special->shown : OptionValue(value);
          },
          [=](const std::string& text, const std::string& what) {
            if (special && special->shown == OptionValue(text)) return special->shown;
            return OptionValue(parse_whole(text, what, least, most));
          },
          [=](SolveOptions& options, const OptionValue& value, const std::string& what) {
            using Member = std::remove_reference_t<decltype(access(options))>;
            const bool is_special = special && value == special->shown;
            const std::int64_t whole = is_special ? special->value : whole_of(value, what);
            if (!is_special) check_whole(whole, least, most, what);
            access(options) = static_cast<Member>(whole);
          }};
}

/// A number in a range; of an optional member also nothing.
template <class Access>
OptionField number_field(Access access, const OptionRange& range) {
  return {[=](const SolveOptions& options) -> OptionValue {
            const auto& member = access(options);
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, double>) {
              return member;
            } else {
              return member ? OptionValue(*member) : OptionValue();
            }
          },
          [=](const std::string& text, const std::string& what) {
            return OptionValue(range.in_percent ? parse_fraction(text, what) : parse_number(text, what));
          },
          [=](SolveOptions& options, const OptionValue& value, const std::string& what) {
            auto& member = access(options);
            if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(member)>, double>) {
              if (std::holds_alternative<std::monostate>(value)) {
                member.reset();
                return;
              }
            }
            member = within(range, number_of(value, what), what);
          }};
}

OptionValue parse_word(const std::string& text, const std::string& what);
/// Throws Error(usage) that lists the names.
std::size_t find_choice(const std::string& word, const std::vector<std::string>& names,
                        const std::string& what);

/// One of a few values, each of which has a name.
template <class Access, class Member>
OptionField choice_field(Access access, std::vector<std::string> names, std::vector<Member> members) {
  return {[=](const SolveOptions& options) -> OptionValue {
            std::size_t i = 0;
            while (members[i] != access(options)) ++i;
            return names[i];
          },
          parse_word,
          [=](SolveOptions& options, const OptionValue& value, const std::string& what) {
            access(options) = members[find_choice(word_of(value, what), names, what)];
          }};
}

/// A name that `check(options, name, what)` lets pass; it throws Error(usage).
template <class Access, class Check>
OptionField name_field(Access access, Check check) {
  return {[=](const SolveOptions& options) { return OptionValue(access(options)); }, parse_word,
          [=](SolveOptions& options, const OptionValue& value, const std::string& what) {
            check(options, word_of(value, what), what);
            access(options) = word_of(value, what);
          }};
}

/// --epoch: fastest_link, slowest_link or microseconds.
OptionField epoch_field();

}  // namespace rondo
