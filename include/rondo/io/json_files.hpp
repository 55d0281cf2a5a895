#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rondo/core/collective.hpp"
#include "rondo/core/schedule.hpp"
#include "rondo/core/topology.hpp"

/// The JSON forms of FORMATS.md 1 to 3. Readers refuse unknown keys and name them, with the place in the
/// document
/// ("links[3].bandwith_GBps"); known keys that no engine supports yet give Error(unavailable), all else
/// Error(bad_data).
namespace rondo {

using Json = nlohmann::ordered_json;

/// Parses text. `what` (a file name) stands in messages. Throws Error(bad_data) with line and column for
/// invalid, truncated or too deep JSON, for a repeated key and for numbers that no double holds (1e400).
Json parse_json(const std::string& text, const std::string& what);

/// The text of `json`, an object, with a last member "checksum" over all that stands before it.
std::string sealed_text(Json json);
/// The way back, without that member. Throws Error(bad_data) where the text is not, to the byte, what
/// sealed_text gave.
Json parse_sealed_json(const std::string& text, const std::string& what);

Topology topology_from_json(const Json& json);
Json topology_to_json(const Topology& topology);

/// Custom demand, format `rondo-demand`. Chunks of the file become contributions in file order; ids are
/// 0..n-1.
Demand demand_from_json(const Json& json, std::size_t num_gpus, int chunks_per_contribution);
inline Demand demand_from_json(const Json& json, const Topology& topology, int chunks_per_contribution) {
  return demand_from_json(json, topology.num_gpus(), chunks_per_contribution);
}
/// The same format back.
Json demand_to_json(const Demand& demand);

/// The members "group", "counts" and "relay" of a problem, schedule or report; none for the plain shape.
void write_shape(Json& json, const CollectiveShape& shape);
/// The way back; whether it fits a fabric is for check_shape() to say.
CollectiveShape read_shape(const Json& json);

/// `rondo-schedule`. Chunks of a file become contributions of one chunk each. The file's algorithm
/// bandwidth and gap, where it has them, must follow from its other figures (five digits are enough); that
/// the finish time and the bound are true is for replay and bound_of to say.
ProvenSchedule schedule_from_json(const Json& json);
Json schedule_to_json(const ProvenSchedule& proven);

/// Text for people and tools: objects and arrays without inner structure on one line each, the rest indented.
std::string format_json(const Json& json);

/// A number of a file for people: the shortest text that reads back as the same double.
std::string format_number(double value);

}  // namespace rondo
