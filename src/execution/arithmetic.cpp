#include "rondo/execution/arithmetic.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "numbers.hpp"
#include "rondo/core/error.hpp"

namespace rondo::execution {
namespace {

constexpr std::array<std::pair<Number, std::string_view>, 4> kNumbers = {{{Number::int64, "int64"},
                                                                          {Number::float64, "double"},
                                                                          {Number::float32, "float"},
                                                                          {Number::uint8, "uint8"}}};
constexpr std::array<std::pair<Reduction, std::string_view>, 4> kReductions = {
    {{Reduction::sum, "sum"}, {Reduction::prod, "prod"}, {Reduction::max, "max"}, {Reduction::min, "min"}}};

template <class Value, std::size_t N>
Value value_of(std::string_view name, const char* option,
               const std::array<std::pair<Value, std::string_view>, N>& all) {
  std::string known;
  for (const auto& [value, spelled] : all) {
    if (spelled == name) return value;
    known += known.empty() ? "" : ", ";
    known += spelled;
  }
  throw Error(ExitCode::usage, fmt::format("{} is '{}'; known are: {}", option, name, known));
}

template <class Value, std::size_t N>
std::string_view name_of(Value value, const std::array<std::pair<Value, std::string_view>, N>& all) {
  return std::find_if(all.begin(), all.end(), [&](const auto& row) { return row.first == value; })->second;
}

}  // namespace

std::size_t Arithmetic::size() const {
  return with_type(number, [](auto value) { return sizeof value; });
}

bool Arithmetic::is_exact() const {
  const bool rounds = number == Number::float32 || number == Number::float64;
  return !rounds || reduction == Reduction::max || reduction == Reduction::min;
}

void Arithmetic::combine(std::span<std::byte> into, std::span<const std::byte> other) const {
  with_type(number, [&](auto type) {
    using T = decltype(type);
    for (std::size_t i = 0; i + sizeof(T) <= into.size(); i += sizeof(T)) {
      std::byte* at = into.data() + i;
      store(at, combined(reduction, load<T>(at), load<T>(other.data() + i)));
    }
  });
}

Number parse_number_type(std::string_view name) {
  return value_of(name, "--type", kNumbers);
}
Reduction parse_reduction(std::string_view name) {
  return value_of(name, "--op", kReductions);
}
std::string_view to_string(Number number) {
  return name_of(number, kNumbers);
}
std::string_view to_string(Reduction reduction) {
  return name_of(reduction, kReductions);
}

}  // namespace rondo::execution
