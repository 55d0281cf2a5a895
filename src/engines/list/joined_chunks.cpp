#include "joined_chunks.hpp"

#include <algorithm>
#include <cmath>

namespace rondo {
namespace {

/// Of the chunks that may go together, those that do: what is left goes on in smaller and smaller parts, so
/// that little has to be relayed at the end.
constexpr double kShareTogether = 0.5;
/// Chunks that together take no longer than this many message costs always go together.
constexpr double kMessagesTogether = 2;

}  // namespace

std::vector<ChunkId> joined_chunks(const Hop& hop, ChunkId first, const std::vector<KeyedChunk>& others,
                                   const Demand& demand, const LinkTimetable& timetable, double t_us,
                                   bool all) {
  std::vector<ChunkId> chunks = {first};
  double bytes = demand.bytes(first);
  const double most = std::ceil(static_cast<double>(others.size() + 1) * kShareTogether);
  const HopLink& part = *std::ranges::max_element(hop.links, {}, &HopLink::message_us);
  for (const auto& [key, chunk] : others) {
    const double more = bytes + demand.bytes(chunk);
    const bool is_short = more * part.us_per_byte <= kMessagesTogether * part.message_us;
    if (!all && !is_short && static_cast<double>(chunks.size()) >= most) break;
    if (!timetable.can_start(hop, more, t_us)) break;
    bytes = more;
    chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace rondo
