#include "accept_or_refuse.hpp"
#include "entry_json.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/tuning/tuner.hpp"

/// Files of a catalogue: cells, bins, tables of configurations, spaces to tune in and what was measured in
/// TuCCL's. Cells and spaces that are accepted are written and read again without a difference.
namespace {

using namespace rondo;

catalogue::Series series_of(const Json& json) {
  return catalogue::read_series(JsonObject(JsonObject(json, "").at("series"), "series"));
}

void read_one_cell(const Json& json) {
  const catalogue::ReadCell read = catalogue::read_cell(json);
  const Json written = catalogue::to_json(read.series, read.cell);
  const catalogue::ReadCell again = catalogue::read_cell(written);
  if (catalogue::to_json(again.series, again.cell) != written) std::abort();
}

/// Of a series with cells at the sizes that the file names.
void read_some_bins(const Json& json) {
  catalogue::Table table{series_of(json)};
  if (json.contains("cells") && json["cells"].is_array()) {
    for (const Json& cell : json["cells"]) {
      if (!cell.is_object() || !cell.contains("size_bytes") || !cell["size_bytes"].is_number()) continue;
      table.cells.push_back({.size_bytes = cell["size_bytes"].get<double>(), .way = catalogue::Way::solved});
    }
  }
  catalogue::read_bins(json, table);
}

void read_configurations(const Json& json) {
  catalogue::tuned_from_json(json, series_of(json));
}

void read_space(const Json& json) {
  const tuning::Space space = tuning::space_from_json(json);
  const Json written = space.to_json();
  if (tuning::space_from_json(written).to_json() != written) std::abort();
}

void read_measurements(const Json& json) {
  static const tuning::Space space = tuning::tuccl_space();
  tuning::records_from_json(json, space, "a model");
}

}  // namespace

RONDO_FUZZ_TARGET(catalogue)(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::to_string(data, size);
  for (const auto read : {read_one_cell, read_some_bins, read_configurations, read_space, read_measurements})
    fuzz::accept_or_refuse([&] { read(parse_json(text, "input")); });
  return 0;
}
