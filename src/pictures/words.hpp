#pragma once

#include <string>

#include "analysis.hpp"
#include "rondo/core/schedule.hpp"

/// A summary of a schedule in sentences.
namespace rondo::pictures {

/// "allgather of 1 GB over 16 GPUs of ndv2-2".
std::string title_words(const ProvenSchedule& proven);
/// How long it takes, and how far that is from the bound.
std::string result_words(const ProvenSchedule& proven);
/// Why nothing can be faster: the certificate as an argument. Empty where there is no bound.
std::string certificate_words(const ProvenSchedule& proven);

/// "chunk 4 of c0g1"; of sums "chunk 4, the sum of 3 of 8, which is added" and "chunk 4, the whole sum".
std::string send_label(const ProvenSchedule& proven, const SumFacts& sums, int send);

}  // namespace rondo::pictures
