#include "rondo/catalogue/repairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_object.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"

namespace rondo::catalogue {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRepairs = "repairs";
/// Written last.
constexpr const char* kTable = "failures.json";

fs::path path_of(const Folder& folder, const Running& running) {
  return folder.path() / kRepairs / running.fabric / running.digest / fmt::format("{}", running.at_us);
}

std::vector<fs::path> folders_in(const fs::path& path) {
  std::vector<fs::path> folders;
  if (!fs::is_directory(path)) return folders;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Row {
  NodeId a, b;
  PreparedRepair repair;
};

Row row_of(const JsonObject& json, const fs::path& table, const Running& running) {
  const auto expect = [&](const char* key, const std::string& right) {
    if (json.text(key) != right)
      json.refuse(fmt::format("{} is {}, and the folder is of {}", key, json.text(key), right));
  };
  expect("schedule_digest", running.digest);
  expect("fabric", running.fabric);
  if (json.number("at_us") != running.at_us)
    json.refuse(fmt::format("at_us is {}, and the folder is of {}", json.number("at_us"), running.at_us));
  const std::vector<std::int64_t> nodes = json.integers("nodes");
  if (nodes.size() != 2) json.refuse(fmt::format("nodes has {} numbers; it has two", nodes.size()));
  Row row{NodeId(static_cast<std::int32_t>(nodes[0])), NodeId(static_cast<std::int32_t>(nodes[1])), {}};
  PreparedRepair& repair = row.repair;
  repair.refused = json.text_or("refused", "", 1 << 16);
  if (!repair.refused.empty()) return row;
  repair.whole_finish_us = json.number("whole_finish_us");
  repair.made_by = json.text("made_by");
  if (!json.has("finish_us")) return row;
  repair.finish_us = json.number("finish_us");
  repair.lower_bound_us = json.number("lower_bound_us");
  repair.digest = json.text("rest_digest");
  repair.rest = table.parent_path() / fmt::format("{}-{}.h5", nodes[0], nodes[1]);
  return row;
}

std::vector<Row> rows_of(const Folder& folder, const Running& running) {
  const fs::path table = path_of(folder, running) / kTable;
  const Json json = parse_json(read_text_file(table), table.string());
  std::vector<Row> rows;
  naming_file(table, [&] {
    if (!json.is_array()) throw Error(ExitCode::bad_data, "it is no list of repairs");
    for (std::size_t i = 0; i < json.size(); ++i)
      rows.push_back(row_of(JsonObject(json[i], element_place("", i)), table, running));
  });
  return rows;
}

ProvenSchedule checked_rest(const PreparedRepair& repair) {
  if (!fs::exists(repair.rest)) {
    throw Error(ExitCode::bad_data,
                repair.rest.string() +
                    " is gone, a repair of the catalogue; rondo repair --all-single-failures "
                    "--catalogue makes it again once its table, failures.json and the "
                    "numbered file beside it, are removed");
  }
  ProvenSchedule rest = read_schedule(repair.rest);
  naming_file(repair.rest, [&] {
    if (schedule_digest(rest.demand, rest.schedule) != repair.digest)
      throw Error(ExitCode::bad_data, "it is another schedule than the table of its folder says");
  });
  return rest;
}

/// Visits the folders that have a table.
template <class Visit>
void for_each_table(const Folder& folder, const Visit& visit) {
  for (const fs::path& fabric : folders_in(folder.path() / kRepairs)) {
    for (const fs::path& schedule : folders_in(fabric)) {
      for (const fs::path& time : folders_in(schedule)) {
        const std::optional<double> at_us = number_of(time.filename());
        if (at_us && fs::exists(time / kTable))
          visit(Running{fabric.filename(), schedule.filename(), *at_us}, time);
      }
    }
  }
}

bool has_fabric(const Folder& folder, const std::string& fabric) {
  const std::vector<std::string> all = folder.fabrics();
  return std::ranges::find(all, fabric) != all.end();
}

}  // namespace

fs::path make_repairs_folder(const Folder& folder, const Running& running) {
  fs::path path = folder.path() / kRepairs;
  make_folder(path);
  for (const std::string& name : {running.fabric, running.digest, fmt::format("{}", running.at_us)}) {
    path /= name;
    make_folder(path);
  }
  remove_temporary_files(path);
  return path;
}

std::vector<double> repair_times(const Folder& folder, const std::string& fabric, const std::string& digest) {
  std::vector<double> times_us;
  for (const fs::path& time : folders_in(folder.path() / kRepairs / fabric / digest)) {
    const std::optional<double> at_us = number_of(time.filename());
    if (at_us && fs::exists(time / kTable)) times_us.push_back(*at_us);
  }
  std::ranges::sort(times_us);
  return times_us;
}

PreparedRepair find_repair(const Folder& folder, const Running& running, NodeId a, NodeId b) {
  const std::vector<double> times_us = repair_times(folder, running.fabric, running.digest);
  if (std::ranges::find(times_us, running.at_us) == times_us.end()) {
    throw Error(
        ExitCode::no_input,
        fmt::format("the catalogue has no repairs of the schedule {} at {} us; {}", running.digest,
                    running.at_us,
                    times_us.empty() ? "it has none of this schedule: rondo repair --all-single-failures "
                                       "--catalogue prepares them"
                                     : fmt::format("it has them at {} us", fmt::join(times_us, ", "))));
  }
  const auto [low, high] = std::minmax(a, b);
  for (Row& row : rows_of(folder, running)) {
    if (row.a != low || row.b != high) continue;
    if (!row.repair.rest.empty()) checked_rest(row.repair);
    return std::move(row.repair);
  }
  throw Error(ExitCode::no_input,
              fmt::format("the catalogue has no repair where links between nodes {} and {} fail", low.value,
                          high.value));
}

std::vector<PreparedRepair> repairs_at(const Folder& folder, const Running& running) {
  std::vector<PreparedRepair> repairs;
  for (Row& row : rows_of(folder, running)) repairs.push_back(std::move(row.repair));
  return repairs;
}

VerifiedRepairs verify_repairs(const Folder& folder) {
  VerifiedRepairs result;
  const auto gather = [&](const fs::path& what, const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.code() != ExitCode::bad_data && error.code() != ExitCode::unavailable) throw;
      result.faults.push_back(what.string() + ": " + error.what());
    }
  };
  for_each_table(folder, [&](const Running& running, const fs::path& path) {
    gather(path, [&] {
      if (!has_fabric(folder, running.fabric))
        throw Error(ExitCode::bad_data, "the catalogue has no such fabric");
      for (const Row& row : rows_of(folder, running)) {
        ++result.repairs;
        if (row.repair.rest.empty()) continue;
        gather(row.repair.rest, [&] {
          const ProvenSchedule rest = checked_rest(row.repair);
          rondo::verify(rest);
          if (rest.schedule.finish_us != row.repair.finish_us ||
              rest.lower_bound->us != row.repair.lower_bound_us)
            throw Error(ExitCode::bad_data,
                        "its finish or its bound is another than the table of its folder says");
        });
      }
    });
  });
  return result;
}

std::size_t prune_repairs(const Folder& folder) {
  std::size_t files = 0;
  for (const fs::path& fabric : folders_in(folder.path() / kRepairs)) {
    if (has_fabric(folder, fabric.filename())) continue;
    for (const auto& entry : fs::recursive_directory_iterator(fabric))
      files += entry.is_regular_file() ? 1 : 0;
    fs::remove_all(fabric);
  }
  return files;
}

void merge_repairs(const Folder& folder, const Folder& from) {
  for_each_table(from, [&](const Running& running, const fs::path& path) {
    if (!has_fabric(folder, running.fabric)) return;
    const fs::path target = make_repairs_folder(folder, running);
    if (fs::exists(target / kTable)) return;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (!is_temporary_name(entry.path().filename()) && entry.path().filename() != kTable)
        files.push_back(entry.path());
    }
    files.push_back(path / kTable);  // last: what is there then is whole
    for (const fs::path& file : files) write_atomically(target / file.filename(), read_text_file(file));
  });
}

}  // namespace rondo::catalogue
