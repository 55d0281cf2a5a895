#pragma once

#include <string>
#include <vector>

namespace rondo::cli {

/// Rows of cells as aligned columns, two blanks apart.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace rondo::cli
