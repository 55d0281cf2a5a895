#include "rondo/catalogue/entry.hpp"

#include <fmt/format.h>

#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo::catalogue {

std::string fingerprint(const Topology& topology) {
  Json json = topology_to_json(topology);
  json.erase("name");
  json.erase("source");
  return digest_of(json.dump());
}

std::string id_of(const Series& series) {
  const std::string key = fmt::format("{} {} {} {} {}", series.fabric, to_string(series.collective),
                                      series.root.value, to_string(series.group), series.relays);
  return fmt::format("{}-{}", to_string(series.collective), digest_of(key).substr(0, 12));
}

std::string describe(const Series& series) {
  std::string text(to_string(series.collective));
  if (series.collective->has_root) text += fmt::format(" of GPU {}", series.root.value);
  return text + rondo::describe(CollectiveShape{series.group, {}, series.relays});
}

Demand demand_of(const Series& series, double size_bytes, std::size_t num_gpus) {
  return make_demand(series.collective, size_bytes, num_gpus, 1, series.root,
                     CollectiveShape{series.group, {}, series.relays});
}

const char* to_string(Way way) {
  switch (way) {
    case Way::solved:
      return "solved";
    case Way::adapted:
      return "adapted";
    case Way::replayed:
      return "replayed";
    default:
      return "refused";
  }
}

}  // namespace rondo::catalogue
