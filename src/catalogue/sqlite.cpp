#include "sqlite.hpp"

#include <cstring>

#include "rondo/core/error.hpp"

namespace rondo::catalogue {
namespace {

[[noreturn]] void refuse(sqlite3* database) {
  throw Error(ExitCode::bad_data, database == nullptr ? "out of memory" : sqlite3_errmsg(database));
}

}  // namespace

Database::Database() {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) refuse(handle);
}

Database::Database(std::string_view bytes) : Database() {
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size()));
  if (copy == nullptr && !bytes.empty()) throw Error(ExitCode::io, "out of memory");
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  // SQLite frees the copy, also where it fails.
  const int code = sqlite3_deserialize(handle(), "main", copy, size, size,
                                       SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  if (code != SQLITE_OK) refuse(handle());
  run("PRAGMA trusted_schema = OFF");
  run("PRAGMA cell_size_check = ON");
}

void Database::run(const char* sql) const {
  if (sqlite3_exec(handle(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) refuse(handle());
}

std::string Database::serialized() const {
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(handle(), "main", &size, 0);
  if (bytes == nullptr) throw Error(ExitCode::io, "out of memory");
  std::string text(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  return text;
}

Statement::Statement(const Database& database, const char* sql) : database_(database.handle()) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr);
  statement_.reset(statement);
  check(code);
}

Statement& Statement::bind(int parameter, const std::string& text) {
  check(sqlite3_bind_text(statement_.get(), parameter + 1, text.data(), static_cast<int>(text.size()),
                          SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind(int parameter, double value) {
  check(sqlite3_bind_double(statement_.get(), parameter + 1, value));
  return *this;
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), parameter + 1, value));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) check(code);
  return code == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
}

std::string Statement::text(int column) const {
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? ""
                          : std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

double Statement::number(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) refuse(database_);
}

}  // namespace rondo::catalogue
