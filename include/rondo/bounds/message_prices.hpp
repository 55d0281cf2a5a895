#pragma once

#include <optional>

#include "rondo/core/certificate.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/decomp/orbits.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// The best bound by prices over time of messages that is more than `least_us`, where some link's messages
/// cost; nothing where none is found. Flows over time in which each byte keeps its links as long as the
/// message that brings it does give the prices; the certificate's arithmetic says what they prove. Of unicast
/// demand all data counts, else what one GPU wants, one an orbit. `backwards`: the problem is a transposed
/// one. Fabrics too large for it, and such with store-and-forward switches, are left out; past `deadline`
/// what has been found by then.
std::optional<LowerBound> find_message_prices(const Topology& topology, const Demand& demand,
                                              const Symmetry& symmetry, const MakeColumnMaster& make_master,
                                              double least_us, const Deadline& deadline = {});

}  // namespace rondo
