#include "round_reader.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "hdf5_reader.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/user_block.hpp"
#include "round_columns.hpp"

namespace rondo {
namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();

/// The columns of one group, which have one length.
class Columns {
 public:
  explicit Columns(Hdf5GroupReader group) : group_(std::move(group)) {}

  bool has(const char* name) const { return group_.has_link(name); }
  std::vector<double> numbers(const char* name) { return counted(name, group_.numbers(name)); }
  std::vector<std::string> texts(const char* name) { return counted(name, group_.texts(name)); }
  std::vector<std::int64_t> integers(const char* name, std::int64_t least, std::int64_t most) {
    std::vector<std::int64_t> values = counted(name, group_.integers(name));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= least && values[i] <= most) continue;
      group_.refuse(name, fmt::format("[{}] is {}; it has to be from {} to {}", i, values[i], least, most));
    }
    return values;
  }
  template <class Id>
  std::vector<Id> ids(const char* name) {
    std::vector<Id> ids;
    for (const std::int64_t value : integers(name, 0, kMaxId))
      ids.emplace_back(static_cast<std::int32_t>(value));
    return ids;
  }
  std::vector<std::int64_t> counts(const char* name) {
    return integers(name, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  }

 private:
  template <class Values>
  Values counted(const char* name, Values values) {
    if (!count_) count_ = values.size();
    if (values.size() != *count_) {
      group_.refuse(name, fmt::format("{} values; the columns before have {}", values.size(), *count_));
    }
    return values;
  }

  Hdf5GroupReader group_;
  std::optional<std::size_t> count_;
};

Columns open_columns(const Hdf5GroupReader& parent, const char* name,
                     std::initializer_list<std::string_view> known) {
  Hdf5GroupReader group = parent.open_group(name);
  group.check_members(known);
  return Columns(std::move(group));
}

std::vector<Send> read_sends(const Hdf5GroupReader& root, const char* name, int version) {
  root.open_group(name).check_version(version, {"transfer", "rate_GBps"});
  Columns columns = open_columns(
      root, name, {"chunk", "link", "start_us", "end_us", "arrival_us", "op", "transfer", "rate_GBps"});
  const auto chunk = columns.ids<ChunkId>("chunk");
  const auto link = columns.ids<LinkId>("link");
  const auto start_us = columns.numbers("start_us");
  const auto end_us = columns.numbers("end_us");
  const auto arrival_us = columns.numbers("arrival_us");
  const auto op = columns.integers("op", 0, 1);
  const auto transfer = columns.has("transfer") ? columns.integers("transfer", kNoTransfer, kMaxId)
                                                : std::vector<std::int64_t>{};
  const auto rate_GBps = columns.has("rate_GBps") ? columns.numbers("rate_GBps") : std::vector<double>{};
  std::vector<Send> sends;
  sends.reserve(chunk.size());
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    sends.push_back({.chunk = chunk[i],
                     .link = link[i],
                     .start_us = start_us[i],
                     .end_us = end_us[i],
                     .arrival_us = arrival_us[i],
                     .op = static_cast<SendOp>(op[i])});
    if (!transfer.empty()) sends.back().transfer = static_cast<std::int32_t>(transfer[i]);
    if (!rate_GBps.empty()) sends.back().rate_GBps = rate_GBps[i];
  }
  return sends;
}

std::vector<Holding> read_holdings(const Hdf5GroupReader& state, const char* name) {
  Columns columns = open_columns(state, name, {"chunk", "gpu", "from_us"});
  const auto chunk = columns.ids<ChunkId>("chunk");
  const auto gpu = columns.ids<GpuId>("gpu");
  const auto from_us = columns.numbers("from_us");
  std::vector<Holding> holdings;
  holdings.reserve(chunk.size());
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    holdings.push_back({.chunk = chunk[i], .gpu = gpu[i], .from_us = from_us[i]});
  }
  return holdings;
}

std::vector<UnmetDemand> read_unmet(const Hdf5GroupReader& state) {
  Columns columns = open_columns(state, "unmet", {"chunk", "gpu"});
  const auto chunk = columns.ids<ChunkId>("chunk");
  const auto gpu = columns.ids<GpuId>("gpu");
  std::vector<UnmetDemand> unmet;
  unmet.reserve(chunk.size());
  for (std::size_t i = 0; i < chunk.size(); ++i) unmet.push_back({.chunk = chunk[i], .gpu = gpu[i]});
  return unmet;
}

RoundState read_state(const Hdf5GroupReader& state) {
  state.check_members({"time_us", "buffers", "in_flight", "unmet"});
  return {.time_us = state.number("time_us"),
          .buffers = read_holdings(state, "buffers"),
          .in_flight = read_holdings(state, "in_flight"),
          .unmet = read_unmet(state)};
}

std::vector<RoundPart> read_parts(const Hdf5GroupReader& root) {
  Columns columns = open_columns(root, "parts",
                                 {"name", "outcome", "rank", "seconds", "columns", "rows", "nodes",
                                  "iterations", "transfers_changed", "objective_before", "objective_after"});
  const auto name = columns.texts("name");
  const auto outcome = columns.texts("outcome");
  const auto rank = columns.integers("rank", 0, std::numeric_limits<int>::max());
  const auto seconds = columns.numbers("seconds");
  const auto model_columns = columns.counts("columns");
  const auto model_rows = columns.counts("rows");
  const auto nodes = columns.counts("nodes");
  const auto iterations = columns.counts("iterations");
  const auto transfers_changed = columns.counts("transfers_changed");
  const auto objective_before = columns.numbers("objective_before");
  const auto objective_after = columns.numbers("objective_after");
  std::vector<RoundPart> parts;
  for (std::size_t i = 0; i < name.size(); ++i) {
    parts.push_back({.name = name[i],
                     .outcome = outcome[i],
                     .rank = static_cast<int>(rank[i]),
                     .seconds = seconds[i],
                     .columns = model_columns[i],
                     .rows = model_rows[i],
                     .nodes = nodes[i],
                     .iterations = iterations[i],
                     .transfers_changed = transfers_changed[i],
                     .objective_before = objective_before[i],
                     .objective_after = objective_after[i]});
  }
  return parts;
}

RoundRecord read_record(const Hdf5GroupReader& root) {
  root.check_members({"format", "version", "round", "chunks", "begin_us", "end_us", "finish_before_us",
                      "finish_after_us", "bound_us", "sends", "plan", "state", "parts"});
  const int version = root.check_format("rondo-round");
  RoundRecord record;
  record.round = root.integer("round");
  record.chunks = root.integer("chunks");
  record.begin_us = root.number("begin_us");
  record.end_us = root.number("end_us");
  record.sends = read_sends(root, "sends", version);
  record.state = read_state(root.open_group("state"));
  if (root.has_link("plan")) record.plan = read_sends(root, "plan", version);
  record.finish_before_us = root.number("finish_before_us");
  record.finish_after_us = root.number("finish_after_us");
  record.bound_us = root.number("bound_us");
  record.parts = read_parts(root);
  return record;
}

}  // namespace

RoundRecord read_round_file_of(const std::filesystem::path& path,
                               const std::optional<std::string>& problem_digest) {
  const auto refuse = [&](const std::string& message) {
    throw Error(ExitCode::bad_data, fmt::format("'{}': {}", path.string(), message));
  };
  const UserBlock block = verify_user_block(path);
  if (problem_digest && block.problem_digest != *problem_digest) {
    refuse(fmt::format("belongs to another problem, of digest {}; this one's is {}", block.problem_digest,
                       *problem_digest));
  }
  RoundRecord record = read_record(Hdf5InputFile(path).root());
  if (const std::string fault = find_fault(record); !fault.empty()) refuse(fault);
  if (record.round != block.round) {
    refuse(fmt::format("round: {}; the user block says {}", record.round, block.round));
  }
  return record;
}

}  // namespace rondo
