#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/catalogue/catalogue.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "sqlite.hpp"

namespace rondo::catalogue {
namespace {

/// 'rndC'.
constexpr std::int64_t kApplication = 0x726e6443;
constexpr std::int64_t kIndexVersion = 1;

constexpr const char* kSchema =
    "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE fabrics (fingerprint TEXT PRIMARY KEY, name TEXT NOT NULL, gpus INTEGER NOT NULL) WITHOUT "
    "ROWID;"
    "CREATE TABLE series (id TEXT PRIMARY KEY, fabric TEXT NOT NULL, collective TEXT NOT NULL, root INTEGER "
    "NOT "
    "NULL, gpus TEXT NOT NULL, relays INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE cells (series TEXT NOT NULL, size_bytes REAL NOT NULL, way TEXT NOT NULL, schedule TEXT "
    "NOT "
    "NULL, finish_us REAL, bound_us REAL, gap REAL, certificate TEXT NOT NULL, digest TEXT NOT NULL, engine "
    "TEXT "
    "NOT NULL, seed INTEGER NOT NULL, made_from TEXT NOT NULL, settings TEXT NOT NULL, producer TEXT NOT "
    "NULL, "
    "wall_s REAL NOT NULL, refusal TEXT NOT NULL, PRIMARY KEY (series, size_bytes)) WITHOUT ROWID;"
    "CREATE TABLE bins (series TEXT NOT NULL, from_bytes REAL NOT NULL, to_bytes REAL NOT NULL, schedule "
    "TEXT NOT "
    "NULL, PRIMARY KEY (series, from_bytes)) WITHOUT ROWID;";

/// Of all tables but `about`, in the order of their keys.
constexpr const char* kAllRows[] = {"SELECT * FROM fabrics ORDER BY 1", "SELECT * FROM series ORDER BY 1",
                                    "SELECT * FROM cells ORDER BY 1, 2", "SELECT * FROM bins ORDER BY 1, 2"};
constexpr int kColumns[] = {3, 6, 16, 4};

std::string checksum(const Database& database) {
  std::string all;
  for (std::size_t t = 0; t < std::size(kAllRows); ++t) {
    Statement rows(database, kAllRows[t]);
    while (rows.step()) {
      for (int c = 0; c < kColumns[t]; ++c) all += rows.text(c) + '\x1f';
      all += '\n';
    }
  }
  return digest_of(all);
}

void insert_fabrics(const Database& database, const Folder& folder) {
  Statement insert(database, "INSERT INTO fabrics VALUES (?, ?, ?)");
  for (const std::string& name : folder.fabrics()) {
    const auto topology = folder.fabric(name);
    insert.bind(0, name).bind(1, topology->name()).bind(2, static_cast<std::int64_t>(topology->num_gpus()));
    insert.step();
    insert.reset();
  }
}

void insert_series(const Database& database, const Series& series) {
  Statement insert(database, "INSERT INTO series VALUES (?, ?, ?, ?, ?, ?)");
  insert.bind(0, id_of(series)).bind(1, series.fabric).bind(2, std::string(to_string(series.collective)));
  insert.bind(3, std::int64_t{series.root.value}).bind(4, to_string(series.group));
  insert.bind(5, std::int64_t{series.relays});
  insert.step();
}

void insert_cells(const Database& database, const Table& table) {
  Statement insert(database, "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const Cell& cell : table.cells) {
    insert.bind(0, id_of(table.series)).bind(1, cell.size_bytes).bind(2, std::string(to_string(cell.way)));
    insert.bind(3, cell.schedule).bind(4, cell.finish_us).bind(5, cell.bound ? cell.bound->us : 0.0);
    insert.bind(6, cell.bound && !cell.is_refused() ? cell.gap() : 0.0);
    insert.bind(7, cell.bound ? certificate_kind(cell.bound->certificate) : "").bind(8, cell.digest);
    insert.bind(9, cell.engine).bind(10, static_cast<std::int64_t>(cell.seed)).bind(11, cell.made_from);
    insert.bind(12, cell.settings).bind(13, cell.producer).bind(14, cell.wall_s).bind(15, cell.refusal);
    insert.step();
    insert.reset();
  }
}

void insert_bins(const Database& database, const Table& table) {
  Statement insert(database, "INSERT INTO bins VALUES (?, ?, ?, ?)");
  for (const Bin& bin : table.bins) {
    insert.bind(0, id_of(table.series)).bind(1, bin.from_bytes).bind(2, bin.to_bytes).bind(3, bin.schedule);
    insert.step();
    insert.reset();
  }
}

std::string schema_of(const Database& database) {
  std::string text;
  Statement tables(database, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name");
  while (tables.step()) text += tables.text(0) + ";";
  return text;
}

std::int64_t pragma(const Database& database, const char* sql) {
  Statement statement(database, sql);
  return statement.step() ? statement.integer(0) : 0;
}

void check_index(const Database& database) {
  if (pragma(database, "PRAGMA application_id") != kApplication)
    throw Error(ExitCode::bad_data, "it is no index of a catalogue");
  const std::int64_t version = pragma(database, "PRAGMA user_version");
  if (version != kIndexVersion) {
    throw Error(ExitCode::bad_data,
                fmt::format("it has version {}; this Rondo reads version {}", version, kIndexVersion));
  }
  Statement check(database, "PRAGMA quick_check(1)");
  const std::string found = check.step() ? check.text(0) : "";
  if (found != "ok") throw Error(ExitCode::bad_data, found);
  Database empty;
  empty.run(kSchema);
  if (schema_of(database) != schema_of(empty)) throw Error(ExitCode::bad_data, "it has other tables");
  Statement sum(database, "SELECT value FROM about WHERE key = 'checksum'");
  if (!sum.step() || sum.text(0) != checksum(database))
    throw Error(ExitCode::bad_data, "its rows are not those that were written");
}

}  // namespace

void write_index(const Folder& folder) {
  Database database;
  database.run(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication, kIndexVersion)
          .c_str());
  database.run(kSchema);
  database.run("BEGIN");
  insert_fabrics(database, folder);
  for (const Series& series : folder.all_series()) {
    const Table table = folder.table(series);
    insert_series(database, series);
    insert_cells(database, table);
    insert_bins(database, table);
  }
  Statement insert(database, "INSERT INTO about VALUES (?, ?)");
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"checksum", checksum(database)},
                                   std::pair<std::string, std::string>{"producer", producer()}}) {
    insert.bind(0, key).bind(1, value).step();
    insert.reset();
  }
  database.run("COMMIT");
  write_atomically(folder.index_path(), database.serialized());
}

class Catalogue::Index {
 public:
  explicit Index(Folder folder) : folder_(std::move(folder)), database_(read(folder_.index_path())) {
    Statement all(database_, "SELECT fingerprint FROM fabrics ORDER BY 1");
    while (all.step()) fabrics_.push_back(all.text(0));
  }

  Found lookup(const Query& query) {
    const std::string id = id_of(series_of(query));
    if (!(query.size_bytes > 0) || !std::isfinite(query.size_bytes)) {
      throw Error(ExitCode::usage,
                  fmt::format("the size is {} bytes; it has to be positive and finite", query.size_bytes));
    }
    bin_.reset();
    bin_.bind(0, id).bind(1, query.size_bytes);
    if (!bin_.step()) refuse(query);
    const std::string schedule = bin_.text(2);
    folder_.check_is_there(schedule);
    Found found{.schedule = folder_.schedule_path(schedule),
                .from_bytes = bin_.number(0),
                .to_bytes = bin_.number(1)};
    cell_.reset();
    cell_.bind(0, id).bind(1, schedule).bind(2, query.size_bytes);
    if (!cell_.step())
      throw Error(ExitCode::bad_data,
                  fmt::format("{} has a bin without a cell", folder_.index_path().string()));
    found.cell_bytes = cell_.number(0);
    found.finish_us = cell_.number(1);
    found.bound_us = cell_.number(2);
    found.gap = cell_.number(3);
    found.certificate = cell_.text(4);
    found.digest = cell_.text(5);
    return found;
  }

  const std::vector<std::string>& fabrics() const { return fabrics_; }

 private:
  static Database read(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path)) {
      throw Error(ExitCode::no_input,
                  path.string() +
                      " is not there: no series is finished yet, or it is gone; rondo catalogue "
                      "verify --repair makes it from the other files");
    }
    try {
      Database database(read_text_file(path));
      check_index(database);
      return database;
    } catch (const Error& error) {
      if (error.code() != ExitCode::bad_data) throw;
      throw Error(error.code(),
                  fmt::format("{} is damaged: {}; rondo catalogue verify --repair makes it anew "
                              "from the other files, which have all that it has",
                              path.string(), error.what()));
    }
  }

  Series series_of(const Query& query) const {
    Series series{query.fabric, query.collective, query.root, query.group, query.relays};
    if (!series.fabric.empty()) return series;
    if (fabrics_.size() != 1) {
      throw Error(ExitCode::usage,
                  fmt::format("the catalogue is of {} fabrics; name one with --topology", fabrics_.size()));
    }
    series.fabric = fabrics_.front();
    return series;
  }

  [[noreturn]] void refuse(const Query& query) const {
    std::string there;
    Statement all(database_,
                  "SELECT collective, gpus, fabric FROM series WHERE id IN (SELECT series FROM bins) "
                  "ORDER BY 1, 2, 3");
    while (all.step()) {
      there += fmt::format("{}{}{}", there.empty() ? "" : ", ", all.text(0),
                           all.text(1).empty() ? "" : " over GPUs " + all.text(1));
    }
    throw Error(ExitCode::no_input,
                fmt::format("the catalogue has no {}; it has {}", describe(series_of(query)),
                            there.empty() ? "nothing" : there));
  }

  Folder folder_;
  Database database_;
  std::vector<std::string> fabrics_;
  Statement bin_{
      database_,
      "SELECT from_bytes, to_bytes, schedule FROM bins WHERE series = ?1 AND from_bytes <= ?2 ORDER BY "
      "from_bytes DESC LIMIT 1"};
  Statement cell_{
      database_,
      "SELECT size_bytes, finish_us, bound_us, gap, certificate, digest FROM cells WHERE series = ?1 "
      "AND schedule = ?2 ORDER BY max(size_bytes / ?3, ?3 / size_bytes) LIMIT 1"};
};

Catalogue::Catalogue(const std::filesystem::path& folder)
    : index_(std::make_unique<Index>(Folder::open(folder))) {}
Catalogue::~Catalogue() = default;
Catalogue::Catalogue(Catalogue&&) noexcept = default;
Catalogue& Catalogue::operator=(Catalogue&&) noexcept = default;

Found Catalogue::lookup(const Query& query) const {
  return index_->lookup(query);
}

const std::vector<std::string>& Catalogue::fabrics() const {
  return index_->fabrics();
}

}  // namespace rondo::catalogue
