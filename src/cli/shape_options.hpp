#pragma once

#include <string>
#include <vector>

#include "rondo/core/collective.hpp"
#include "settings.hpp"

/// Who takes part in a collective, as the command line says it: --group, --relay and --counts.
namespace rondo::cli {

std::vector<Option> shape_options();

/// "0-7,16-23". Throws Error(usage) for anything else, for GPUs out of range, named twice or not ascending,
/// and for one GPU alone.
std::vector<GpuId> parse_group(const std::string& text, std::size_t num_gpus);

/// Bytes from a file: a list, or a matrix where `rows` is set (its rows one after another), as JSON, or as
/// text with a row a line and blanks, commas or semicolons between. Throws Error(bad_data), with the place,
/// for what is no whole number of bytes and for rows of other lengths.
std::vector<double> parse_counts(const std::string& text, const std::string& path, bool is_matrix,
                                 std::size_t num_members, const std::string& whose);

/// Of a named collective. Throws Error.
CollectiveShape read_shape_options(const Settings& settings, Collective collective, std::size_t num_gpus);
/// The demand of a file, in a group or without relays where that is asked. Throws Error.
Demand with_shape_options(const Settings& settings, const Demand& demand);

}  // namespace rondo::cli
