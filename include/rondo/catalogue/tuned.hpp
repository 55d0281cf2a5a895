#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rondo/catalogue/folder.hpp"

/// Which configuration of the executor to use (FORMATS.md, "A catalogue"): TuCCL's table of operator, size
/// and topology.
namespace rondo::catalogue {

struct Configuration {
  std::string values;      ///< "protocol=LL,channels=4"
  double recent_us = 0;    ///< what the last call took, the mean of a tuning before any
  std::int64_t calls = 0;  ///< since the tuning
};

struct TunedSize {
  double size_bytes = 0;
  std::string objective = {};  ///< what it was tuned by
  std::vector<Configuration> configurations = {};
};

/// By size; empty where the series was not tuned. Throws Error(bad_data), naming the file.
std::vector<TunedSize> read_tuned(const Folder& folder, const Series& series);

/// Replaces what the series has of that size. Written whole or not at all.
void write_tuned(const Folder& folder, const Series& series, TunedSize tuned);

/// The tuned size nearest to a size, by ratio. Throws Error(no_input) where there is none.
TunedSize& tuned_for(std::vector<TunedSize>& tuned, const Series& series, double size_bytes);

/// The configuration with the least recent latency; the first of equal ones.
const Configuration& choose(const TunedSize& tuned);

/// What a call took: from now on its configuration's recent latency, in the size nearest to `size_bytes`.
/// Throws Error(usage) for a configuration that is not in the table, or a time that is none.
void record_call(const Folder& folder, const Series& series, double size_bytes, const std::string& values,
                 double time_us);

}  // namespace rondo::catalogue
