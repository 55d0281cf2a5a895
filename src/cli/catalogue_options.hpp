#pragma once

#include <string>
#include <vector>

#include "fabrics.hpp"
#include "rondo/catalogue/catalogue.hpp"
#include "settings.hpp"

/// What the commands of the catalogue have in common.
namespace rondo::cli {

/// The catalogue's folder, as the option without dashes.
Option catalogue_option();
/// Which of its fabrics, and --seed.
OptionGroup fabric_of_catalogue(Option seed = degrading_seed());
/// --collective, --root, --group, --relay: one series.
std::vector<Option> series_options();

/// "allgather,alltoall". Throws Error(usage) for what is no named collective, or named twice.
std::vector<Collective> parse_collectives(const std::string& text);
/// "1KB,4KB", and "1KiB..1GiB": all sizes from the one to the other, each twice the one before. Ascending.
/// Throws Error(usage).
std::vector<double> parse_sizes(const std::string& text);
/// "all;0-7;0-7,8-15". Throws Error(usage).
std::vector<std::vector<GpuId>> parse_groups(const std::string& text, std::size_t num_gpus);

/// The fingerprint that --topology names, which has to be of the catalogue; without it that of the only
/// fabric. Throws Error(usage).
std::string fabric_in(const catalogue::Folder& folder, const Settings& settings);
/// One series, by series_options() and --topology.
catalogue::Series series_in(const catalogue::Folder& folder, const Settings& settings);
/// "64 KB", "any".
std::string shown_size(double bytes);

}  // namespace rondo::cli
