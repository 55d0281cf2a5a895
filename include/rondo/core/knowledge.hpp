#pragma once

#include <cstddef>

#include "rondo/core/certificate.hpp"

namespace rondo {

/// A certificate of more is refused.
inline constexpr std::size_t kMostKnowledgeTimes = 4096;
inline constexpr std::size_t kMostKnowledgeSets = 64;

/// The last of the certificate's times before which its GPU cannot have all that counts, by the arithmetic of
/// FORMATS.md 3: with the times up to there it proves that. For a search: of a certificate that is
/// `backwards` this is the transposed problem. `work` grows by the starts on links looked at. Throws
/// Error(bad_data) for what bound_of() refuses, but not for times that are too many.
double known_until_us(const Topology& topology, const Demand& demand, const KnowledgeCertificate& certificate,
                      std::size_t& work);

}  // namespace rondo
