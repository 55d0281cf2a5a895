#include <fmt/format.h>

#include <utility>

#include "format_version.hpp"
#include "rondo/io/json_object.hpp"

namespace rondo {
namespace {

constexpr std::int64_t kMostTenant = (std::int64_t{1} << 31) - 1;

GpuId read_gpu(const JsonObject& object, const char* key, std::size_t num_gpus) {
  return GpuId(static_cast<std::int32_t>(
      object.integer(key, {.least = 0, .greatest = static_cast<std::int64_t>(num_gpus) - 1})));
}

std::vector<GpuId> read_gpus(const JsonObject& object, const char* key, std::size_t num_gpus) {
  std::vector<GpuId> gpus;
  for (const std::int64_t gpu :
       object.integers(key, {.least = 0, .greatest = static_cast<std::int64_t>(num_gpus) - 1})) {
    gpus.push_back(GpuId(static_cast<std::int32_t>(gpu)));
  }
  return gpus;
}

/// One time, or one for each source.
void read_ready_times(const JsonObject& object, Contribution& contribution) {
  if (!object.has("ready_us")) return;
  if (!object.at("ready_us").is_array()) {
    contribution.ready_us = object.number("ready_us");
    return;
  }
  std::vector<double> ready_us = object.numbers("ready_us");
  const std::size_t num_sources = contribution.sources.size();
  if (ready_us.size() != num_sources) {
    object.refuse(fmt::format("ready_us lists {} times for {} sources; give one for each, or one number",
                              ready_us.size(), num_sources));
  }
  if (num_sources == 1) {
    contribution.ready_us = ready_us.front();
  } else {
    contribution.source_ready_us = std::move(ready_us);
  }
}

Contribution read_chunk(const JsonObject& object, std::size_t position, std::size_t num_gpus, int version) {
  object.check_keys(
      {"id", "bytes", "sources", "destinations", "reduce", "held", "tenant", "priority", "ready_us"});
  object.check_version(version, {"held"});
  const std::int64_t id = object.integer("id");
  if (id != static_cast<std::int64_t>(position)) {
    object.refuse(
        fmt::format("id is {}; ids are 0, 1, 2, ... in file order, so it has to be {}", id, position));
  }
  std::vector<GpuId> sources = read_gpus(object, "sources", num_gpus);
  if (sources.empty()) object.refuse("sources is empty, so nobody has the data; name the GPU that holds it");
  Contribution contribution{.origin = sources.front(),
                            .bytes = object.number("bytes"),
                            .destinations = read_gpus(object, "destinations", num_gpus),
                            .reduce = object.flag_or("reduce", false)};
  contribution.sources = std::move(sources);
  if (object.has("tenant"))
    contribution.tenant = static_cast<int>(object.integer("tenant", {.least = 0, .greatest = kMostTenant}));
  contribution.priority = object.number_or("priority", 1);
  read_ready_times(object, contribution);
  if (object.has("held")) {
    object.for_each_object("held", [&](const JsonObject& held, std::size_t) {
      held.check_keys({"gpu", "sources"});
      contribution.held.push_back(
          {.gpu = read_gpu(held, "gpu", num_gpus), .sources = read_gpus(held, "sources", num_gpus)});
    });
  }
  return contribution;
}

Json ids_to_json(std::span<const GpuId> gpus) {
  Json json = Json::array();
  for (const GpuId gpu : gpus) json.push_back(gpu.value);
  return json;
}

}  // namespace

Demand demand_from_json(const Json& json, std::size_t num_gpus, int chunks_per_contribution) {
  const JsonObject object(json, "");
  const int version = object.check_format("rondo-demand");
  object.check_keys({"format", "version", "chunks"});
  const Json& chunks = object.array("chunks");
  std::vector<Contribution> contributions;
  double size_bytes = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const JsonObject chunk(chunks[i], element_place("chunks", i));
    contributions.push_back(read_chunk(chunk, i, num_gpus, version));
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
    Json chunk = {{"id", chunks.size()},
                  {"bytes", contribution.bytes},
                  {"sources", ids_to_json(contribution.all_sources())},
                  {"destinations", ids_to_json(contribution.destinations)}};
    if (contribution.reduce) chunk["reduce"] = true;
    for (const HeldSum& held : contribution.held)
      chunk["held"].push_back({{"gpu", held.gpu.value}, {"sources", ids_to_json(held.sources)}});
    if (!contribution.source_ready_us.empty()) {
      chunk["ready_us"] = contribution.source_ready_us;
    } else if (contribution.ready_us != 0) {
      chunk["ready_us"] = contribution.ready_us;
    }
    if (contribution.tenant != 0) chunk["tenant"] = contribution.tenant;
    if (contribution.priority != 1) chunk["priority"] = contribution.priority;
    chunks.push_back(std::move(chunk));
  }
  return {{"format", "rondo-demand"}, {"version", version_of(demand)}, {"chunks", std::move(chunks)}};
}

}  // namespace rondo
