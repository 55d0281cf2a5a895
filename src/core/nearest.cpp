#include "rondo/core/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "rondo/core/generators.hpp"

namespace rondo {
namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& name : names) {
    const auto [shorter, longer] = std::minmax({word.size(), name.size()});
    if (longer - shorter >= least) continue;  // as many letters have to be put in: a long word takes long
    const std::size_t distance = edit_distance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = &name;
  }
  return nearest == nullptr ? "" : fmt::format(" (did you mean '{}'?)", *nearest);
}

std::string if_family_parameter(const std::string& name) {
  std::vector<std::string> families;
  for (const TopologyGenerator& family : topology_generators()) {
    if (std::any_of(family.parameters.begin(), family.parameters.end(),
                    [&](const GeneratorParameter& p) { return p.name == name; })) {
      families.push_back(family.name);
    }
  }
  if (families.empty()) return "";
  return fmt::format(" (a parameter of {}? write {}:{}=VALUE as the topology)", join(families),
                     families.front(), name);
}

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace rondo
