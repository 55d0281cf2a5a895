#pragma once

#include <filesystem>
#include <vector>

#include "rondo/parallel/communicator.hpp"
#include "round_columns.hpp"

namespace rondo {

/// Collective. Writes the rows of all columns into the file at `path`, which has the datasets and all the
/// space already: with several ranks each its own rows (rows_of_rank) by collective writes. When it returns,
/// the file is closed everywhere and what each rank wrote is with the disk. Throws Error(cannot_create) on
/// every rank alike, with `shown` as the path.
///
/// It does not see a disk that loses what it was given: on a full one every call here succeeds. Reserve the
/// space before, read the file after.
void write_columns(const std::vector<RoundColumn>& columns, const std::filesystem::path& path,
                   const std::filesystem::path& shown, const Communicator& communicator);

}  // namespace rondo
