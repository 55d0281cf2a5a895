#include <fmt/format.h>

#include <limits>

#include "rondo/io/json_object.hpp"

namespace rondo {

void write_shape(Json& json, const CollectiveShape& shape) {
  if (!shape.group.empty()) {
    Json group = Json::array();
    for (const GpuId gpu : shape.group) group.push_back(gpu.value);
    json["group"] = std::move(group);
  }
  if (!shape.counts.empty()) json["counts"] = shape.counts;
  if (!shape.relays) json["relay"] = "none";
}

CollectiveShape read_shape(const Json& json) {
  const JsonObject object(json, "");
  CollectiveShape shape;
  if (object.has("group")) {
    for (const std::int64_t gpu :
         object.integers("group", {.least = 0, .greatest = std::numeric_limits<std::int32_t>::max()})) {
      shape.group.emplace_back(static_cast<std::int32_t>(gpu));
    }
  }
  if (object.has("counts")) shape.counts = object.numbers("counts");
  if (object.has("relay")) {
    const std::string relay = object.text("relay");
    if (relay != "none") object.refuse(fmt::format("relay is '{}'; it has to be none, or left out", relay));
    shape.relays = false;
  }
  return shape;
}

}  // namespace rondo
