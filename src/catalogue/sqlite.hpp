#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

namespace rondo::catalogue {

/// A database in memory.
class Database {
 public:
  Database();
  /// Of the bytes of a file, read alone. Errors show at the first use.
  explicit Database(std::string_view bytes);

  void run(const char* sql) const;
  /// The bytes of its file.
  std::string serialized() const;
  sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement. Parameters and columns count from 0. Throws Error(bad_data) with SQLite's reason.
class Statement {
 public:
  Statement(const Database& database, const char* sql);

  Statement& bind(int parameter, const std::string& text);
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, std::int64_t value);
  /// Whether there is another row.
  bool step();
  /// For other parameters.
  void reset();

  std::string text(int column) const;
  double number(int column) const;
  std::int64_t integer(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  void check(int code) const;

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace rondo::catalogue
