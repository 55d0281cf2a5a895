#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "rondo/core/round.hpp"

namespace rondo {

/// read_round_file, which also refuses a file whose user block has another digest than `problem_digest`,
/// where that is given.
RoundRecord read_round_file_of(const std::filesystem::path& path,
                               const std::optional<std::string>& problem_digest);

}  // namespace rondo
