#include "shape_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "rondo/core/error.hpp"
#include "rondo/core/numbers.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo::cli {
namespace {

/// Bytes beyond this are no longer whole numbers in a double.
constexpr double kLargestWhole = 9007199254740992.0;

using CountRows = std::vector<std::vector<double>>;

[[noreturn]] void refuse_group(const std::string& value, const std::string& why) {
  throw Error(ExitCode::usage, fmt::format("--group is '{}', but {}", value, why));
}

[[noreturn]] void refuse_counts(const std::string& path, const std::string& why) {
  throw Error(ExitCode::bad_data, fmt::format("{}: {}", path, why));
}

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

double checked_count(double bytes, const std::string& shown, const std::string& path,
                     const std::string& place) {
  if (bytes >= 0 && bytes <= kLargestWhole && bytes == std::floor(bytes)) return bytes;
  refuse_counts(path, fmt::format("{} is {}; counts are whole numbers of bytes, 0 or more", place, shown));
}

double count_of_json(const Json& json, const std::string& path, const std::string& place) {
  if (!json.is_number()) {
    refuse_counts(path, fmt::format("{} is {}; counts are whole numbers of bytes, 0 or more", place,
                                    json.dump().substr(0, 40)));
  }
  return checked_count(json.get<double>(), json.dump(), path, place);
}

CountRows rows_of_json(const Json& json, const std::string& path) {
  CountRows rows;
  const bool nested = !json.empty() && json.front().is_array();
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!nested) {
      if (rows.empty()) rows.emplace_back();
      rows.front().push_back(count_of_json(json[i], path, fmt::format("count {}", i)));
      continue;
    }
    if (!json[i].is_array()) refuse_counts(path, fmt::format("row {} is no array, but row 0 is one", i));
    rows.emplace_back();
    for (std::size_t j = 0; j < json[i].size(); ++j)
      rows.back().push_back(count_of_json(json[i][j], path, fmt::format("count {} of row {}", j, i)));
  }
  return rows;
}

/// Blank lines, and what follows a '#', count for nothing.
CountRows rows_of_text(const std::string& text, const std::string& path) {
  CountRows rows;
  const std::vector<std::string> lines = split(text, "\n");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<double> row;
    for (const std::string& word : split(lines[i].substr(0, lines[i].find('#')), " \t\r,;")) {
      if (word.empty()) continue;
      double bytes = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bytes);
      const bool is_number = error == std::errc() && end == word.data() + word.size();
      row.push_back(checked_count(is_number ? bytes : -1, "'" + word + "'", path,
                                  fmt::format("count {} of line {}", row.size(), i + 1)));
    }
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

bool forbids_relays(const Settings& settings) {
  const std::string& relay = settings.text("relay");
  if (relay != "any" && relay != "none")
    throw Error(ExitCode::usage, fmt::format("--relay is '{}'; it is any or none", relay));
  return relay == "none";
}

void refuse_idle_relay(const Settings& settings, bool all_take_part) {
  settings.refuse_ignored(
      "relay",
      all_take_part ? "every GPU takes part, so that none only relays; give --group, or leave it out" : "");
}

}  // namespace

std::vector<Option> shape_options() {
  return {{"group", "LIST", "", "the GPUs that take part, such as 0-7,16-23 (default: all)"},
          {"relay", "any|none", "any", "none: GPUs outside the group neither send nor receive"},
          {"counts", "FILE", "",
           "bytes of every GPU's part (allgather, reduce_scatter, scatter, gather: one a GPU of the group; "
           "alltoall: a row a sender), as JSON or text; then without --size"}};
}

std::vector<GpuId> parse_group(const std::string& text, std::size_t num_gpus) {
  std::vector<GpuId> group;
  const auto most = static_cast<std::int64_t>(num_gpus) - 1;
  for (const std::string& part : split(text, ",")) {
    const std::vector<std::string> ends = split(part, "-");
    const bool is_number = std::ranges::all_of(ends, [](const std::string& end) {
      return !end.empty() && end.size() < 10 && end.find_first_not_of("0123456789") == std::string::npos;
    });
    if (!is_number || ends.size() > 2)
      refuse_group(text, fmt::format("'{}' is no GPU or range; write a list such as 0-7,16-23", part));
    const std::int64_t first = std::stoll(ends.front());
    const std::int64_t last = std::stoll(ends.back());
    if (last > most || first > most) {
      refuse_group(text, fmt::format("there is no GPU {}; GPUs are 0 to {}", std::max(first, last), most));
    }
    if (last < first) refuse_group(text, fmt::format("'{}' runs backwards; write {}-{}", part, last, first));
    for (std::int64_t g = first; g <= last; ++g) group.emplace_back(static_cast<std::int32_t>(g));
  }
  std::vector<GpuId> sorted = group;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    refuse_group(text, fmt::format("it names GPU {} twice; name it once", twice->value));
  if (sorted != group)
    refuse_group(text, fmt::format("GPUs are named in ascending order; write {}", to_string(sorted)));
  if (group.size() < 2)
    refuse_group(text, "a collective needs at least two GPUs; name another one, or leave it out");
  return group;
}

std::vector<double> parse_counts(const std::string& text, const std::string& path, bool is_matrix,
                                 std::size_t num_members, const std::string& whose) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_json = begin != std::string::npos && (text[begin] == '[' || text[begin] == '{');
  Json json;
  if (is_json) json = parse_json(text, path);
  if (is_json && !json.is_array())
    refuse_counts(path, "counts are a JSON array, or text with a row a line; this is a JSON object");
  CountRows rows = is_json ? rows_of_json(json, path) : rows_of_text(text, path);
  if (!is_matrix && rows.size() > 1 && std::ranges::all_of(rows, [](auto& row) { return row.size() == 1; })) {
    for (std::size_t i = 1; i < rows.size(); ++i) rows.front().push_back(rows[i].front());
    rows.resize(1);
  }
  const std::size_t num_rows = is_matrix ? num_members : 1;
  if (rows.size() != num_rows) {
    refuse_counts(path, fmt::format("there are {} rows of counts; {} takes {} of {} each", rows.size(), whose,
                                    num_rows, num_members));
  }
  std::vector<double> counts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != num_members) {
      refuse_counts(path, fmt::format("row {} has {} counts; {} takes {}{}", i, rows[i].size(), whose,
                                      num_members, is_matrix ? " in each row" : ""));
    }
    counts.insert(counts.end(), rows[i].begin(), rows[i].end());
  }
  return counts;
}

CollectiveShape read_shape_options(const Settings& settings, Collective collective, std::size_t num_gpus) {
  CollectiveShape shape;
  if (settings.has("group")) shape.group = parse_group(settings.text("group"), num_gpus);
  if (shape.group.size() == num_gpus) shape.group.clear();
  const bool forbids = forbids_relays(settings);
  refuse_idle_relay(settings, shape.group.empty());
  shape.relays = !forbids;
  const std::size_t num_members = shape.group.empty() ? num_gpus : shape.group.size();
  const std::size_t num_counts = collective->num_counts(num_members);
  if (num_counts == 0) {
    settings.refuse_ignored("counts", fmt::format("{} has one buffer for all; leave it out and give --size",
                                                  to_string(collective)));
  }
  if (!settings.has("counts")) return shape;
  settings.refuse_ignored("size", "--counts says how large the collective is; leave one of them out");
  const std::string& path = settings.text("counts");
  shape.counts = parse_counts(read_text_file(path), path, num_counts != num_members, num_members,
                              fmt::format("{} among {} GPUs", to_string(collective), num_members));
  return shape;
}

Demand with_shape_options(const Settings& settings, const Demand& demand) {
  CollectiveShape shape;
  if (settings.has("group")) shape.group = parse_group(settings.text("group"), demand.num_gpus());
  shape.relays = !forbids_relays(settings);
  if (!shape.relays && shape.group.empty()) {
    std::set<GpuId> members;
    for (const Contribution& c : demand.contributions()) {
      members.insert(c.destinations.begin(), c.destinations.end());
      for (const GpuId source : c.all_sources()) members.insert(source);
      for (const HeldSum& held : c.held) members.insert(held.gpu);
    }
    shape.group.assign(members.begin(), members.end());
  }
  refuse_idle_relay(settings, shape.group.size() == demand.num_gpus() || shape.group.empty());
  settings.refuse_ignored("counts", "--demand says how large everything is; leave it out");
  return Demand(demand.collective(), demand.size_bytes(), demand.num_gpus(), demand.contributions(),
                demand.chunks_per_contribution(), std::move(shape));
}

}  // namespace rondo::cli
