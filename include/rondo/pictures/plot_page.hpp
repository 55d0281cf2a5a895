#pragma once

#include <string>
#include <vector>

#include "rondo/pictures/line_plot.hpp"

namespace rondo::pictures {

struct PlotSection {
  std::string heading;
  std::vector<std::vector<std::string>> table;  ///< cells by rows; the first row is its head
  std::vector<std::string> sentences;           ///< below the table
  std::vector<Plot> plots;
};

/// One HTML page that needs nothing but itself and runs no script: sentences, then section by section a table
/// and its plots.
std::string html_of(const std::string& title, const std::vector<std::string>& sentences,
                    const std::vector<PlotSection>& sections);

}  // namespace rondo::pictures
