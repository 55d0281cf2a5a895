#include "rondo/catalogue/folder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "entry_json.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_object.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"

namespace rondo::catalogue {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "catalogue.json";
constexpr const char* kBins = "bins.json";
constexpr const char* kFabrics = "fabrics";
constexpr const char* kSchedules = "schedules";
constexpr const char* kCells = "cells";
constexpr const char* kTuned = "tuned";
constexpr int kVersion = 1;
/// Of the schedules in memory, together: some 300 MB.
constexpr std::size_t kSendsInMemory = 5'000'000;

Json read_sealed_file(const fs::path& path) {
  return parse_sealed_json(read_text_file(path), path.string());
}

void check_mark(const fs::path& path) {
  const Json json = read_sealed_file(path);
  naming_file(path, [&] {
    const JsonObject object(json, "");
    object.check_keys({"format", "version", "producer"});
    if (object.text("format") != "rondo-catalogue")
      object.refuse(fmt::format("format is '{}', not rondo-catalogue", object.text("format")));
    const std::int64_t version = object.integer("version");
    if (version != kVersion) {
      object.refuse(
          fmt::format("the catalogue has version {} (of {}); this Rondo reads version {}: use that "
                      "one, or build the catalogue anew in another folder",
                      version, object.text("producer"), kVersion));
    }
  });
}

/// Sends name links by their numbers, so the fabric belongs to it.
std::string name_of(const ProvenSchedule& proven) {
  return digest_of(schedule_digest(proven.demand, proven.schedule) + fingerprint(proven.topology));
}

/// Names of the files that end so, without that end, sorted.
std::vector<std::string> stems(const fs::path& folder, const std::string& extension) {
  std::vector<std::string> names;
  if (!fs::is_directory(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension && !is_temporary_name(entry.path().filename()))
      names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

Folder Folder::open(fs::path path) {
  if (!fs::exists(path / kMark)) {
    throw Error(ExitCode::no_input,
                fmt::format("{} is no catalogue: it has no {}; rondo catalogue build makes one",
                            path.string(), kMark));
  }
  check_mark(path / kMark);
  return Folder(std::move(path));
}

Folder Folder::open_or_make(fs::path path) {
  make_folder(path);
  if (!fs::exists(path / kMark)) {
    for (const auto& entry : fs::directory_iterator(path)) {
      const std::string name = entry.path().filename();
      if (name == "lock" || is_temporary_name(name)) continue;
      throw Error(ExitCode::cannot_create,
                  fmt::format("{} has {}, which is of no catalogue; give an empty or a new folder",
                              path.string(), name));
    }
    write_text_file(
        path / kMark,
        sealed_text({{"format", "rondo-catalogue"}, {"version", kVersion}, {"producer", producer()}}));
  }
  Folder folder = open(std::move(path));
  for (const char* name : {kFabrics, kSchedules, kCells}) {
    make_folder(folder.path_ / name);
    remove_temporary_files(folder.path_ / name);
  }
  for (const auto& entry : fs::directory_iterator(folder.path_ / kCells))
    remove_temporary_files(entry.path());
  remove_temporary_files(folder.path_);
  remove_temporary_files(folder.path_ / kTuned);
  return folder;
}

fs::path Folder::schedule_path(const std::string& digest) const {
  return path_ / kSchedules / (digest + ".h5");
}

void Folder::check_is_there(const std::string& digest) const {
  const fs::path path = schedule_path(digest);
  if (fs::exists(path)) return;
  throw Error(
      ExitCode::bad_data,
      fmt::format("{} is gone, the schedule of cells of the catalogue; rondo catalogue build with the "
                  "options of the first time solves them again",
                  path.string()));
}

fs::path Folder::series_path(const Series& series) const {
  return path_ / kCells / id_of(series);
}

fs::path Folder::cell_path(const Series& series, double size_bytes) const {
  return series_path(series) / fmt::format("{}.json", size_bytes);
}

fs::path Folder::index_path() const {
  return path_ / "index.sqlite";
}

fs::path Folder::tuned_path(const Series& series) const {
  return path_ / kTuned / (id_of(series) + ".json");
}

fs::path Folder::tuning_path(const Series& series, double size_bytes) const {
  return path_ / kTuned / fmt::format("{}-{}.measurements", id_of(series), size_bytes);
}

std::vector<std::string> Folder::fabrics() const {
  return stems(path_ / kFabrics, ".json");
}

std::shared_ptr<const Topology> Folder::fabric(const std::string& fingerprint) const {
  const fs::path path = path_ / kFabrics / (fingerprint + ".json");
  if (!fs::exists(path))
    throw Error(ExitCode::bad_data, path.string() + " is gone, the fabric of cells of the catalogue");
  auto topology = std::make_shared<const Topology>(
      read_as(path, [](const Json& json) { return topology_from_json(json); }));
  if (const std::string found = catalogue::fingerprint(*topology); found != fingerprint) {
    throw Error(ExitCode::bad_data,
                fmt::format("{}: the fabric in it has the fingerprint {}; the file was changed or damaged",
                            path.string(), found));
  }
  return topology;
}

std::string Folder::add_fabric(const Topology& topology) const {
  const std::string name = catalogue::fingerprint(topology);
  const fs::path path = path_ / kFabrics / (name + ".json");
  if (!fs::exists(path)) write_text_file(path, format_json(topology_to_json(topology)));
  return name;
}

void Folder::remove_fabric(const std::string& fingerprint) const {
  remove_file(path_ / kFabrics / (fingerprint + ".json"));
}

std::vector<Series> Folder::all_series() const {
  std::vector<std::string> names;
  if (fs::is_directory(path_ / kCells)) {
    for (const auto& entry : fs::directory_iterator(path_ / kCells)) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  std::vector<Series> all;
  for (const std::string& name : names) {
    const fs::path folder = path_ / kCells / name;
    for (const std::string& stem : stems(folder, ".json")) {
      if (stem == fs::path(kBins).stem()) continue;
      const fs::path path = folder / (stem + ".json");
      const Json json = read_sealed_file(path);
      const Series series = naming_file(path, [&] { return read_cell(json).series; });
      if (id_of(series) != name) {
        throw Error(ExitCode::bad_data, fmt::format("{} is a cell of {}, which is in the folder {}",
                                                    path.string(), describe(series), id_of(series)));
      }
      all.push_back(series);
      break;
    }
  }
  return all;
}

Table Folder::table(const Series& series) const {
  Table table{series};
  const fs::path folder = series_path(series);
  for (const std::string& stem : stems(folder, ".json")) {
    const fs::path path = folder / (stem + ".json");
    if (path.filename() == kBins) continue;
    const Json json = read_sealed_file(path);
    ReadCell read = naming_file(path, [&] { return read_cell(json); });
    if (read.series != series || cell_path(series, read.cell.size_bytes) != path) {
      throw Error(ExitCode::bad_data,
                  fmt::format("{} is the cell of {} bytes of {}, which has another file", path.string(),
                              read.cell.size_bytes, describe(read.series)));
    }
    table.cells.push_back(std::move(read.cell));
  }
  std::ranges::sort(table.cells, {}, &Cell::size_bytes);
  if (const fs::path path = folder / kBins; fs::exists(path)) {
    const Json json = read_sealed_file(path);
    naming_file(path, [&] { read_bins(json, table); });
  }
  return table;
}

std::optional<Cell> Folder::made_cell(const Series& series, double size_bytes) const {
  const fs::path path = cell_path(series, size_bytes);
  if (!fs::exists(path)) return std::nullopt;
  const Json json = read_sealed_file(path);
  ReadCell read = naming_file(path, [&] { return read_cell(json); });
  if (read.series != series || read.cell.size_bytes != size_bytes)
    throw Error(ExitCode::bad_data, path.string() + " is of another cell");
  if (!read.cell.is_refused()) schedule(read.cell.schedule);
  return std::move(read.cell);
}

void Folder::write(const Series& series, const Cell& cell) const {
  make_folder(series_path(series));
  write_text_file(cell_path(series, cell.size_bytes), sealed_text(to_json(series, cell)));
}

bool Folder::has_bins(const Series& series) const {
  return fs::exists(series_path(series) / kBins);
}

void Folder::remove_bins(const Series& series) const {
  remove_file(series_path(series) / kBins);
}

void Folder::remove(const Series& series) const {
  remove_bins(series);
  for (const std::string& stem : stems(series_path(series), ".json"))
    remove_file(series_path(series) / (stem + ".json"));
  for (const std::string& stem : stems(series_path(series), ".times"))
    remove_file(series_path(series) / (stem + ".times"));
  std::error_code ignored;  // an empty folder means nothing
  fs::remove(series_path(series), ignored);
}

void Folder::write_bins(const Table& table) const {
  write_text_file(series_path(table.series) / kBins, sealed_text(to_json(table.series, table)));
}

std::shared_ptr<const ProvenSchedule> Folder::schedule(const std::string& digest) const {
  if (const auto found = read_.find(digest); found != read_.end()) return found->second;
  const fs::path path = schedule_path(digest);
  check_is_there(digest);
  auto proven = std::make_shared<const ProvenSchedule>(read_schedule(path));
  if (const std::string found = name_of(*proven); found != digest)
    throw Error(ExitCode::bad_data, fmt::format("{} holds another schedule, {}", path.string(), found));
  keep_in_memory(digest, proven);
  return proven;
}

void Folder::keep_in_memory(const std::string& digest, std::shared_ptr<const ProvenSchedule> proven) const {
  std::size_t sends = proven->schedule.sends.size();
  for (const auto& [name, other] : read_) sends += other->schedule.sends.size();
  if (sends > kSendsInMemory) read_.clear();
  read_[digest] = std::move(proven);
}

std::string Folder::add_schedule(const ProvenSchedule& proven) const {
  const std::string digest = name_of(proven);
  // Not kept in memory: ranks that read it would round its bytes otherwise than this one.
  if (!fs::exists(schedule_path(digest))) write_schedule(schedule_path(digest), proven);
  return digest;
}

std::vector<std::string> Folder::schedules() const {
  return stems(path_ / kSchedules, ".h5");
}

}  // namespace rondo::catalogue
