#include "rondo/catalogue/tuned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "entry_json.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_object.hpp"
#include "rondo/io/read_as.hpp"

namespace rondo::catalogue {
namespace {

void write_all(const Folder& folder, const Series& series, const std::vector<TunedSize>& all) {
  Json sizes = Json::array();
  for (const TunedSize& tuned : all) {
    Json configurations = Json::array();
    for (const Configuration& one : tuned.configurations)
      configurations.push_back({{"values", one.values}, {"recent_us", one.recent_us}, {"calls", one.calls}});
    sizes.push_back({{"size_bytes", tuned.size_bytes},
                     {"objective", tuned.objective},
                     {"configurations", std::move(configurations)}});
  }
  const std::filesystem::path path = folder.tuned_path(series);
  make_folder(path.parent_path());
  write_text_file(path, sealed_text({{"format", kTunedFormat},
                                     {"version", 1},
                                     {"series", series_to_json(series)},
                                     {"sizes", std::move(sizes)}}));
}

}  // namespace

std::vector<TunedSize> read_tuned(const Folder& folder, const Series& series) {
  const std::filesystem::path path = folder.tuned_path(series);
  if (!std::filesystem::exists(path)) return {};
  const Json json = parse_sealed_json(read_text_file(path), path.string());
  return naming_file(path, [&] { return tuned_from_json(json, series); });
}

void write_tuned(const Folder& folder, const Series& series, TunedSize tuned) {
  std::vector<TunedSize> all = read_tuned(folder, series);
  std::erase_if(all, [&](const TunedSize& other) { return other.size_bytes == tuned.size_bytes; });
  all.push_back(std::move(tuned));
  std::ranges::sort(all, {}, &TunedSize::size_bytes);
  write_all(folder, series, all);
}

TunedSize& tuned_for(std::vector<TunedSize>& tuned, const Series& series, double size_bytes) {
  if (tuned.empty()) {
    throw Error(ExitCode::no_input,
                fmt::format("no configuration of {} is known; rondo tune finds them", describe(series)));
  }
  return *std::ranges::min_element(
      tuned, {}, [&](const TunedSize& one) { return std::abs(std::log(one.size_bytes / size_bytes)); });
}

const Configuration& choose(const TunedSize& tuned) {
  return *std::ranges::min_element(tuned.configurations, {}, &Configuration::recent_us);
}

void record_call(const Folder& folder, const Series& series, double size_bytes, const std::string& values,
                 double time_us) {
  if (!(time_us > 0) || !std::isfinite(time_us))
    throw Error(ExitCode::usage, fmt::format("the call took {} us; that is no time", time_us));
  std::vector<TunedSize> all = read_tuned(folder, series);
  TunedSize& tuned = tuned_for(all, series, size_bytes);
  const auto found = std::ranges::find(tuned.configurations, values, &Configuration::values);
  if (found == tuned.configurations.end()) {
    throw Error(ExitCode::usage,
                fmt::format("'{}' is no configuration of {} at {}; the best is '{}'", values,
                            describe(series), format_size(tuned.size_bytes), choose(tuned).values));
  }
  found->recent_us = time_us;
  ++found->calls;
  write_all(folder, series, all);
}

}  // namespace rondo::catalogue
