#pragma once

#include "rondo/pipeline/synthesize.hpp"

/// Several collectives over one fabric at once.
namespace rondo {

/// Whether the demand is of several tenants.
bool is_shared(const Problem& problem);

/// Throws Error for options that do not fit a demand of several tenants, or that of one of them.
void check_tenants(const Problem& problem);

/// Collective. Solves each tenant's demand alone, and all as one demand; then lets their transfers share the
/// fabric in several orders (core/interleaving.hpp) and takes the best by options.objective. The order among
/// tenants is searched by exchanging two of them. With a named engine it is that engine which solves them.
SynthesisResult synthesize_for_tenants(const Problem& problem, const RunContext& context);

/// Collective. The main job whatever the demand's tenants (synthesize.cpp).
SynthesisResult synthesize_as_one(const Problem& problem, const RunContext& context);

}  // namespace rondo
