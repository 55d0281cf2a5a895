#include "catalogue_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "fabrics.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "shape_options.hpp"

namespace rondo::cli {
namespace {

constexpr std::size_t kSizesOfABuild = 4096;

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace

Option catalogue_option() {
  return {"path", "DIR", "", "the folder of the catalogue"};
}

OptionGroup fabric_of_catalogue(Option seed) {
  OptionGroup fabric = fabric_options(std::move(seed));
  fabric.options.front().help = "the fabric, where the catalogue has several: " + fabric.options.front().help;
  return fabric;
}

std::vector<Option> series_options() {
  return {{"collective", "NAME", "", "the collective"},
          {"root", "GPU", "0", "of collectives that have one"},
          {"group", "LIST", "", "the GPUs that take part, such as 0-7,16-23 (default: all)"},
          {"relay", "any|none", "any", "none: GPUs outside the group neither send nor receive"}};
}

std::vector<Collective> parse_collectives(const std::string& text) {
  std::vector<Collective> collectives;
  for (const std::string& word : split_at(text, ',')) {
    const Collective collective = parse_collective(word);
    if (collective == Collective::custom) {
      throw Error(ExitCode::usage,
                  "--collectives names 'custom', which has no size to vary; rondo solve --demand takes it");
    }
    if (std::ranges::find(collectives, collective) != collectives.end())
      throw Error(ExitCode::usage, fmt::format("--collectives names {} twice; leave one of them out", word));
    collectives.push_back(collective);
  }
  return collectives;
}

std::vector<double> parse_sizes(const std::string& text) {
  std::vector<double> sizes;
  for (const std::string& word : split_at(text, ',')) {
    const std::size_t dots = word.find("..");
    const double first = parse_size(word.substr(0, dots));
    const double last = dots == std::string::npos ? first : parse_size(word.substr(dots + 2));
    if (last < first) {
      throw Error(ExitCode::usage,
                  fmt::format("--sizes has the range '{}', which ends before it begins; write "
                              "the smaller size first",
                              word));
    }
    for (double size = first; size <= last && sizes.size() <= kSizesOfABuild; size *= 2)
      sizes.push_back(size);
  }
  if (sizes.size() > kSizesOfABuild)
    throw Error(ExitCode::usage, fmt::format("--sizes names more than {} sizes; give fewer", kSizesOfABuild));
  std::ranges::sort(sizes);
  if (const auto twice = std::ranges::adjacent_find(sizes); twice != sizes.end()) {
    throw Error(ExitCode::usage,
                fmt::format("--sizes names {} twice; leave one of them out", format_size(*twice)));
  }
  return sizes;
}

std::vector<std::vector<GpuId>> parse_groups(const std::string& text, std::size_t num_gpus) {
  std::vector<std::vector<GpuId>> groups;
  for (const std::string& word : split_at(text, ';')) {
    std::vector<GpuId> group;
    if (word != "all") group = parse_group(word, num_gpus);
    if (group.size() == num_gpus) group.clear();
    if (std::ranges::find(groups, group) != groups.end())
      throw Error(ExitCode::usage, fmt::format("--groups names '{}' twice; leave one of them out", word));
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string fabric_in(const catalogue::Folder& folder, const Settings& settings) {
  const std::vector<std::string> there = folder.fabrics();
  if (settings.has("topology") || settings.has("profile")) {
    const Topology topology = fabric_of(settings);
    const std::string name = catalogue::fingerprint(topology);
    if (std::ranges::find(there, name) != there.end()) return name;
    throw Error(ExitCode::no_input,
                fmt::format("the catalogue {} is not of the fabric '{}' (fingerprint {}); it is of {}",
                            folder.path().string(), topology.name(), name, fmt::join(there, ", ")));
  }
  if (there.size() == 1) return there.front();
  throw Error(ExitCode::usage, fmt::format("the catalogue {} is of {} fabrics; name one with --topology",
                                           folder.path().string(), there.size()));
}

catalogue::Series series_in(const catalogue::Folder& folder, const Settings& settings) {
  catalogue::Series series{.fabric = fabric_in(folder, settings)};
  series.collective = parse_collectives(settings.text("collective")).front();
  settings.refuse_ignored("root", series.collective->has_root ? ""
                                                              : fmt::format("{} has no root; leave it out",
                                                                            to_string(series.collective)));
  series.root =
      GpuId(static_cast<std::int32_t>(settings.integer("root", 0, std::numeric_limits<std::int32_t>::max())));
  if (settings.has("group"))
    series.group = parse_groups(settings.text("group"), folder.fabric(series.fabric)->num_gpus()).front();
  const std::string& relay = settings.text("relay");
  if (relay != "any" && relay != "none")
    throw Error(ExitCode::usage, fmt::format("--relay is '{}'; it is any or none", relay));
  series.relays = relay == "any" || series.group.empty();
  return series;
}

std::string shown_size(double bytes) {
  return bytes == 0 ? "0" : std::isfinite(bytes) ? format_size(bytes) : "any";
}

}  // namespace rondo::cli
