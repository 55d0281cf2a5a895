#pragma once

#include <vector>

#include "rondo/catalogue/folder.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo::cli {

/// What an agent asks of a fabric and its schedules (FORMATS.md, "Features").
Json features_of(const catalogue::Folder& folder, const Topology& topology,
                 const std::vector<catalogue::Table>& tables);

}  // namespace rondo::cli
