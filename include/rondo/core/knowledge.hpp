#pragma once

#include <cstddef>

#include "rondo/core/certificate.hpp"

namespace rondo {

/// A certificate of more is refused.
inline constexpr std::size_t kMostKnowledgeTimes = 4096;
inline constexpr std::size_t kMostKnowledgeSets = 64;

/// The last of the certificate's times before which its GPU cannot have all that counts, by the arithmetic of
/// FORMATS.md 3: with the times up to there it proves that. For a search; `backwards` is not looked at.
/// `work` grows by the links looked at, once for each period and each time in it that matters.
/// Throws Error(bad_data) for what bound_of() refuses, but not for times that are too many.
double known_until_us(const Topology& topology, const Demand& demand, const KnowledgeCertificate& certificate,
                      std::size_t& work);

}  // namespace rondo
