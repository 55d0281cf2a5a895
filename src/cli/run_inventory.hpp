#pragma once

#include <filesystem>
#include <string>

namespace rondo::cli {

/// What is in the folder of a run, how far it is and what is damaged, as lines for people. Damage is told,
/// not thrown. Throws Error(io) for files that cannot be read at all.
std::string describe_run(const std::filesystem::path& folder);

}  // namespace rondo::cli
