#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rondo/core/collective_table.hpp"
#include "rondo/core/topology.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/pipeline/synthesize.hpp"

/// What `rondo compare` finds, as it stands in its JSON file (FORMATS.md, "A comparison"), and what is shown
/// of it.
namespace rondo::cli {

/// "auto", then the known algorithms of the registry.
std::vector<std::string> compared_engines();

/// A comparison without rows.
Json new_comparison(const Topology& topology, const Json& options);

/// The comparison in `text`, if it is one of the same fabric and options. Throws Error(bad_data) otherwise;
/// `path` stands in the message.
Json read_comparison(const std::string& text, const std::string& path, const Json& wanted);

/// The row of this collective and size, made where there is none yet.
Json& row_of(Json& comparison, const std::string& collective, double size_bytes);

bool has_result(const Json& row, const std::string& engine);
/// Of `auto`, also the bound that it proves.
void add_result(Json& row, const std::string& engine, const SynthesisResult& result);
/// The engine does not do it: `reason`.
void add_refusal(Json& row, const std::string& engine, const std::string& reason);

/// A row of every collective and size, each with all its results.
struct ShownRows {
  const Json& comparison;
  std::vector<const Json*> rows;
};
std::string comparison_text(const ShownRows& shown);
std::string comparison_page(const ShownRows& shown);
std::string comparison_picture(const ShownRows& shown);

}  // namespace rondo::cli
