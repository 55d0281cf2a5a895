#include "problem.hpp"

#include <fmt/format.h>

#include <map>

#include "ready_options.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/read_as.hpp"
#include "scenario_options.hpp"
#include "shape_options.hpp"
#include "tenant_options.hpp"

namespace rondo::cli {
namespace {

/// "allgather (all parts to every GPU), ..."
std::string collectives_help() {
  std::vector<std::string> texts;
  for (const CollectiveRow& row : collective_rows()) {
    texts.push_back(fmt::format("{} ({})", row.name, row.help));
  }
  return join(texts);
}

/// "what a GPU ends with (allgather, alltoall), ..."
std::string size_help() {
  std::map<std::string_view, std::vector<std::string>> names;
  for (const CollectiveRow& row : collective_rows()) {
    if (!row.size_help.empty()) names[row.size_help].emplace_back(row.name);
  }
  std::vector<std::string> texts;
  for (const auto& [size, of] : names) texts.push_back(fmt::format("{} ({})", size, join(of)));
  return join(texts);
}

std::string rooted() {
  std::vector<std::string> names;
  for (const CollectiveRow& row : collective_rows()) {
    if (row.has_root) names.emplace_back(row.name);
  }
  return join(names);
}

Demand read_demand(const std::filesystem::path& path, const Topology& topology) {
  return read_as(path, [&](const Json& json) { return demand_from_json(json, topology, 1); });
}

Demand custom_demand(const Settings& settings, const Topology& topology) {
  if (settings.has("size") || (settings.has("collective") && settings.text("collective") != "custom")) {
    throw Error(ExitCode::usage,
                "--demand says what is wanted and how large it is; leave --size and --collective out");
  }
  const Demand demand = read_demand(settings.text("demand"), topology);
  return naming_file(settings.text("demand"), [&] { return with_shape_options(settings, demand); });
}

/// Of a collective without one: 0, or what is asked and then refused.
GpuId root_of(const Settings& settings, Collective collective, const CollectiveShape& shape) {
  const GpuId asked(
      static_cast<std::int32_t>(settings.integer("root", 0, std::numeric_limits<std::int32_t>::max())));
  if (!collective->has_root || settings.is_given("root") || shape.group.empty()) return asked;
  return shape.group.front();
}

struct Asked {
  Demand demand;
  GpuId root;
  std::map<int, std::string> tenants = {};
};

Asked demand_of(const Settings& settings, const Topology& topology) {
  if (are_tenants_asked(settings)) {
    SharedDemand shared = read_tenants(settings, topology);
    return {std::move(shared.demand), GpuId{0}, std::move(shared.names)};
  }
  if (settings.has("demand")) {
    Demand custom = custom_demand(settings, topology);
    std::map<int, std::string> names = numbers_as_names(custom);
    return {std::move(custom), root_of(settings, Collective::custom, {}), std::move(names)};
  }
  const Collective collective = parse_collective(settings.text("collective"));
  if (collective == Collective::custom) {
    throw Error(ExitCode::usage, "collective 'custom' needs --demand FILE, which says who wants what");
  }
  const std::size_t gpus = topology.num_gpus();
  const CollectiveShape shape = read_shape_options(settings, collective, gpus);
  const GpuId root = root_of(settings, collective, shape);
  if (shape.counts.empty())
    return {make_demand(collective, parse_size(settings.text("size")), gpus, 1, root, shape), root};
  return naming_file(settings.text("counts"), [&]() -> Asked {
    const double bytes = size_of_counts(collective, shape, gpus);
    if (bytes == 0) throw Error(ExitCode::bad_data, "all counts are 0; give at least one that is positive");
    return {make_demand(collective, bytes, gpus, 1, root, shape), root};
  });
}

std::string why_root_ignored(const Demand& demand) {
  if (demand.collective() == Collective::custom) return "--demand says who sends what to whom; leave it out";
  if (demand.collective()->has_root) return "";
  return fmt::format("{} has no root; leave it out", to_string(demand.collective()));
}

}  // namespace

std::vector<OptionGroup> problem_options(Option seed) {
  std::vector<OptionGroup> groups = {
      fabric_options(std::move(seed)),
      {"Collective",
       {{"collective", "NAME", "", collectives_help()},
        {"size", "SIZE", "", "as in nccl-tests: " + size_help() + ". B, KB, MB, GB (decimal), KiB, MiB, GiB"},
        {"root", "GPU", "0", "of " + rooted() + ": 0 to GPUs - 1 (default in a group: its first GPU)"},
        {"demand", "FILE", "",
         "a custom collective: JSON of format rondo-demand. Given several times: several tenants", nullptr,
         true},
        tenant_option()}}};
  for (Option& option : shape_options()) groups.back().options.push_back(std::move(option));
  groups.back().options.push_back(ready_option());
  return groups;
}

ProblemDocument read_problem(const Settings& settings) {
  auto topology = std::make_shared<const Topology>(fabric_of(settings));
  auto [demand, root, tenants] = demand_of(settings, *topology);
  settings.refuse_ignored("root", why_root_ignored(demand));
  demand = with_ready_times(settings, std::move(demand));
  check_reachable(*topology, demand);
  return {std::move(topology), std::move(demand), root, nullptr, std::move(tenants)};
}

Json problem_to_json(const ProblemDocument& problem, const Json& options) {
  Json json = {{"format", "rondo-problem"},
               {"version", 1},
               {"producer", producer()},
               {"collective", to_string(problem.demand.collective())},
               {"size_bytes", problem.demand.size_bytes()},
               {"root", problem.root.value}};
  write_shape(json, problem.demand.shape());
  if (problem.demand.collective() == Collective::custom) json["demand"] = demand_to_json(problem.demand);
  for (const auto& [number, name] : problem.tenants)
    json["tenants"].push_back({{"tenant", number}, {"name", name}});
  if (!problem.sketch.is_null()) json["sketch"] = problem.sketch;
  if (problem.scenarios) json["scenarios"] = scenarios_to_json(*problem.scenarios);
  json["options"] = options;
  json["topology"] = topology_to_json(*problem.topology);
  return json;
}

ProblemDocument problem_from_json(const Json& json) {
  try {
    if (json.at("format") != "rondo-problem" || json.at("version") != 1) {
      throw Error(ExitCode::bad_data, "this is no rondo-problem of version 1");
    }
    auto topology = std::make_shared<const Topology>(topology_from_json(json.at("topology")));
    const GpuId root(json.at("root").get<std::int32_t>());
    const Collective collective = parse_collective(json.at("collective").get<std::string>());
    const CollectiveShape shape = read_shape(json);
    Demand demand = [&] {
      if (collective != Collective::custom) {
        return make_demand(collective, json.at("size_bytes").get<double>(), topology->num_gpus(), 1, root,
                           shape);
      }
      const Demand custom = demand_from_json(json.at("demand"), *topology, 1);
      return Demand(collective, custom.size_bytes(), custom.num_gpus(), custom.contributions(), 1, shape);
    }();
    std::map<int, std::string> tenants;
    for (const Json& tenant : json.value("tenants", Json::array()))
      tenants[tenant.at("tenant").get<int>()] = tenant.at("name").get<std::string>();
    return {std::move(topology),
            std::move(demand),
            root,
            json.value("sketch", Json()),
            std::move(tenants),
            json.contains("scenarios") ? scenarios_from_json(json["scenarios"]) : nullptr};
  } catch (const Json::exception& error) {
    throw Error(ExitCode::bad_data, fmt::format("this is no rondo-problem of version 1: {}", error.what()));
  }
}

}  // namespace rondo::cli
