#pragma once

#include <string>
#include <vector>

#include "rondo/core/schedule.hpp"

/// Schedules to look at. Pure: a schedule in, the text of a file out, the same text for the same schedule.
/// What is drawn is what the schedule says; nothing here checks it (replay does).
namespace rondo {

/// A round of the round loop on the time axis.
struct RoundSpan {
  double begin_us = 0;
  double end_us = 0;
};

/// What is drawn.
struct PictureSubject {
  const ProvenSchedule& proven;
  std::vector<RoundSpan> rounds = {};  ///< in order; empty where the schedule did not come from rounds
};

/// Trace event JSON (the "JSON Object Format" of the Trace Event Format, which Chrome's tracing and Perfetto
/// read): one track a link with a slice a send, one track a GPU with a mark a chunk that arrives and a count
/// of those it lacks, a track of rounds with a mark each. Arrows follow a chunk from send to send as long as
/// there are at most 50,000 sends (otherData says when not). Times are microseconds.
std::string trace_json(const PictureSubject& subject);

/// One SVG 1.1 image: the result in words, the topology (width of a link: bytes; colour: share of the time
/// that it transmits) and the timeline of the links with their utilisation. Up to 160 links and 2,000 sends
/// are drawn one by one; beyond that links share a row (chassis by chassis where there are any) and a row
/// shows utilisation over time.
std::string svg_picture(const PictureSubject& subject);

/// One SVG 1.1 image of the topology alone: width of a link by its bandwidth. Throws Error(unavailable)
/// beyond 4,000 nodes.
std::string topology_picture(const Topology& topology);

/// One HTML page that needs nothing but itself: result, bound and certificate in words, a timeline that
/// zooms, the topology, the utilisation of the links, and a chunk's path. At most about 5 MB: where not
/// all sends fit, those of chunks spread evenly over the demand stay, and the rest is in
/// the aggregated timeline only, which the page says.
std::string html_page(const PictureSubject& subject);

}  // namespace rondo
