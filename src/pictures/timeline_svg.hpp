#pragma once

#include <string>
#include <vector>

#include "analysis.hpp"
#include "places.hpp"
#include "rondo/pictures/pictures.hpp"

namespace rondo::pictures {

/// A drawing that knows its size.
struct SvgPart {
  std::string elements;
  double width = 0;
  double height = 0;
};

/// One row a Row: sends one by one in the colour of their chunk's origin (of a sum, of the GPU that has it
/// whole first) where there are few, stacked where they share a link; else the share of the row's bandwidth
/// that is used, in the colours of utilisation_colour; at the end the utilisation of the
/// whole time.
SvgPart timeline_svg(const PictureSubject& subject, const std::vector<Row>& rows,
                     const std::vector<LinkLoad>& loads, double width);

/// Whether timeline_svg draws the sends one by one.
bool shows_single_sends(const ProvenSchedule& proven, const std::vector<Row>& rows);

/// The scale of utilisation_colour.
std::string colour_legend(double x, double y);

/// Round values for an axis from 0 to `end`, at most `most` of them.
std::vector<double> axis_ticks(double end, std::size_t most);

}  // namespace rondo::pictures
