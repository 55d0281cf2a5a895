#include <fmt/format.h>

#include <utility>

#include "json_object.hpp"

namespace rondo {
namespace {

std::vector<GpuId> read_gpus(const JsonObject& object, const char* key, std::size_t num_gpus) {
  std::vector<GpuId> gpus;
  for (const std::int64_t gpu :
       object.integers(key, {.least = 0, .greatest = static_cast<std::int64_t>(num_gpus) - 1})) {
    gpus.push_back(GpuId(static_cast<std::int32_t>(gpu)));
  }
  return gpus;
}

/// Keys of the format that are accepted with their neutral value only.
void refuse_unsupported_values(const JsonObject& object) {
  const auto refuse = [&](const char* key, const char* allowed) {
    object.refuse(fmt::format("'{}' is not supported yet; leave it out or give {}", key, allowed),
                  ExitCode::unavailable);
  };
  if (object.flag_or("reduce", false)) refuse("reduce", "false");
  if (object.has("tenant") && object.integer("tenant") != 0) refuse("tenant", "0");
  if (object.number_or("priority", 1) != 1) refuse("priority", "1");
}

Contribution read_chunk(const JsonObject& object, std::size_t position, std::size_t num_gpus) {
  object.check_keys({"id", "bytes", "sources", "destinations", "reduce", "tenant", "priority", "ready_us"});
  const std::int64_t id = object.integer("id");
  if (id != static_cast<std::int64_t>(position)) {
    object.refuse(
        fmt::format("id is {}; ids are 0, 1, 2, ... in file order, so it has to be {}", id, position));
  }
  refuse_unsupported_values(object);
  const std::vector<GpuId> sources = read_gpus(object, "sources", num_gpus);
  if (sources.empty()) object.refuse("sources is empty, so nobody has the data; name the GPU that holds it");
  if (sources.size() > 1) {
    object.refuse(fmt::format("'sources' names {} GPUs; several sources are not supported yet, give one",
                              sources.size()),
                  ExitCode::unavailable);
  }
  return {.origin = sources.front(),
          .bytes = object.number("bytes"),
          .destinations = read_gpus(object, "destinations", num_gpus),
          .ready_us = object.number_or("ready_us", 0)};
}

}  // namespace

Demand demand_from_json(const Json& json, std::size_t num_gpus, int chunks_per_contribution) {
  const JsonObject object(json, "");
  object.check_format("rondo-demand");
  object.check_keys({"format", "version", "chunks"});
  const Json& chunks = object.array("chunks");
  std::vector<Contribution> contributions;
  double size_bytes = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const JsonObject chunk(chunks[i], element_place("chunks", i));
    contributions.push_back(read_chunk(chunk, i, num_gpus));
    const double bytes = contributions.back().bytes;
    if (!(bytes > 0)) chunk.refuse(fmt::format("bytes is {}; it has to be positive", bytes));
    size_bytes += bytes;
  }
  if (contributions.empty()) object.refuse("chunks is empty; give at least one chunk");
  return Demand(Collective::custom, size_bytes, num_gpus, std::move(contributions), chunks_per_contribution);
}

Json demand_to_json(const Demand& demand) {
  Json chunks = Json::array();
  for (const Contribution& contribution : demand.contributions()) {
    Json destinations = Json::array();
    for (const GpuId d : contribution.destinations) destinations.push_back(d.value);
    Json chunk = {{"id", chunks.size()},
                  {"bytes", contribution.bytes},
                  {"sources", {contribution.origin.value}},
                  {"destinations", std::move(destinations)}};
    if (contribution.ready_us != 0) chunk["ready_us"] = contribution.ready_us;
    chunks.push_back(std::move(chunk));
  }
  return {{"format", "rondo-demand"}, {"version", 1}, {"chunks", std::move(chunks)}};
}

}  // namespace rondo
