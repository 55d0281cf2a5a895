#pragma once

#include <string>
#include <vector>

#include "rondo/core/error.hpp"

namespace rondo {

/// The row of `table` called `name`; the first one for "". Throws Error(usage) listing the known names of
/// `engine`.
template <class Policy>
const Policy& find_policy(const std::vector<Policy>& table, const std::string& name,
                          const std::string& engine) {
  if (name.empty()) return table.front();
  std::string known;
  for (const Policy& policy : table) {
    if (policy.name == name) return policy;
    known += (known.empty() ? "" : ", ") + policy.name;
  }
  throw Error(ExitCode::usage,
              "policy '" + name + "' is unknown to engine " + engine + "; known are: " + known);
}

template <class Policy>
std::vector<std::string> names_of(const std::vector<Policy>& table) {
  std::vector<std::string> names;
  for (const Policy& policy : table) names.push_back(policy.name);
  return names;
}

}  // namespace rondo
