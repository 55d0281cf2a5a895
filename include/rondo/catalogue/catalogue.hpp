#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rondo/catalogue/entry.hpp"
#include "rondo/catalogue/folder.hpp"

/// Look-up in a catalogue: an SQLite index beside the schedule files (FORMATS.md, "A catalogue").
namespace rondo::catalogue {

/// Writes the index of all finished series, whole or not at all; what it says follows from the other files.
/// Throws Error(bad_data) naming a damaged file, Error(cannot_create).
void write_index(const Folder& folder);

struct Query {
  Collective collective = Collective::allgather;
  double size_bytes = 0;
  std::string fabric = {};  ///< fingerprint; empty: the only one of the catalogue
  GpuId root{0};
  std::vector<GpuId> group = {};
  bool relays = true;
};

/// Which schedule to use, and what is known at the nearest size of the catalogue.
struct Found {
  std::filesystem::path schedule;  ///< its file; of `made_for_bytes`, and good for all sizes of the bin
  double from_bytes = 0;           ///< of the bin, inclusive
  double to_bytes = 0;             ///< exclusive; infinity: no end
  double cell_bytes = 0;           ///< the nearest cell of the bin, by ratio
  double finish_us = 0;            ///< there
  double bound_us = 0;
  double gap = 0;
  std::string certificate = {};  ///< kind of the bound's
  std::string digest = {};       ///< of the schedule as timed there
};

/// An open index, held in memory: what is written to the folder later is not seen. For one thread.
class Catalogue {
 public:
  /// Checks every page and the checksum over all rows. Throws Error(no_input) where there is no catalogue or
  /// no index, Error(bad_data) where the index is damaged or of another version, saying what makes it anew.
  explicit Catalogue(const std::filesystem::path& folder);
  ~Catalogue();
  Catalogue(Catalogue&&) noexcept;
  Catalogue& operator=(Catalogue&&) noexcept;

  /// Some microseconds. Throws Error(no_input) where the catalogue has no such series, naming what it has;
  /// Error(usage) where it has several fabrics and the query names none, Error(bad_data) where the schedule's
  /// file is gone.
  Found lookup(const Query& query) const;
  /// Fingerprints, sorted.
  const std::vector<std::string>& fabrics() const;

 private:
  class Index;
  std::unique_ptr<Index> index_;
};

}  // namespace rondo::catalogue
