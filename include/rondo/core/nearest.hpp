#pragma once

#include <string>
#include <vector>

namespace rondo {

/// " (did you mean 'X'?)" for the name that takes the fewest edits, or nothing when none is near (Levenshtein
/// distance beyond a third of the length, at least 2).
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names);

/// For an option that does not exist: where a family of topologies has a parameter `name`, how to give it;
/// else nothing.
std::string if_family_parameter(const std::string& name);

/// "a, b, c".
std::string join(const std::vector<std::string>& words);

}  // namespace rondo
