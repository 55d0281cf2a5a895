#pragma once

#include <string>
#include <vector>

#include "rondo/catalogue/entry.hpp"
#include "rondo/catalogue/tuned.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/json_object.hpp"

/// Entries as they stand in files; readers throw Error(bad_data) with the place.
namespace rondo::catalogue {

Json series_to_json(const Series& series);
Series read_series(const JsonObject& object);

Json to_json(const Series& series, const Cell& cell);
Json to_json(const Series& series, const Table& table);  ///< the file of bins

struct ReadCell {
  Series series;
  Cell cell;
};
ReadCell read_cell(const Json& json);

inline constexpr const char* kTunedFormat = "rondo-catalogue-tuned";
/// A table of configurations of the executor.
std::vector<TunedSize> tuned_from_json(const Json& json, const Series& series);

/// The cells' best schedules, after their neighbours' were tried, and the bins: what `table` has of them is
/// replaced. Throws Error(bad_data) where the file is of other cells than the table's.
void read_bins(const Json& json, Table& table);

}  // namespace rondo::catalogue
