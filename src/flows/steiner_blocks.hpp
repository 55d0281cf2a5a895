#pragma once

#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/flows/steiner_packing.hpp"

namespace rondo {

/// The data of a demand with one source each, alike data together; without trees.
std::vector<SteinerBlock> steiner_blocks(const Demand& demand);

/// When periods begin: at 0 and at the ready times, of which those go that are nearest to the one before
/// where they are too many.
std::vector<double> period_begins(const std::vector<SteinerBlock>& blocks);

}  // namespace rondo
