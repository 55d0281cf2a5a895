#pragma once

#include "rondo/bounds/bounds.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// Problems of a group for which no other GPU relays: solved on the part of the fabric that the group may
/// use.
namespace rondo {

/// On the part of the fabric that is left.
Problem on_members(const Problem& problem);
/// The result of on_members(problem) in the numbers of the whole fabric, replayed there.
SynthesisResult of_whole_fabric(const Problem& problem, SynthesisResult result);
/// The same for its bounds.
Bounds of_whole_fabric(const Problem& problem, Bounds bounds);

}  // namespace rondo
