#pragma once

#include <vector>

#include "rondo/profile/profile.hpp"

namespace rondo::profile {

/// Every link's figures with nothing else on the wire.
std::vector<LinkFigures> measure_alone(Wire& wire, const ProfileOptions& options);

double median(std::vector<double> values);

}  // namespace rondo::profile
