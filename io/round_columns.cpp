#include "round_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>

#include "format_version.hpp"

namespace rondo {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are packed as the file has them");

hid_t file_type(std::int32_t) {
  return H5T_STD_I32LE;
}
hid_t file_type(double) {
  return H5T_IEEE_F64LE;
}
hid_t file_type(std::uint8_t) {
  return H5T_STD_U8LE;
}

/// The column of `value(row)` over `rows`.
template <class Row, class Value>
RoundColumn column(const std::string& group, const char* name, const char* units,
                   const std::vector<Row>& rows, Value value) {
  using Stored = decltype(value(rows.front()));
  return {.group = group,
          .name = name,
          .units = units,
          .type = file_type(Stored{}),
          .width = sizeof(Stored),
          .num_rows = rows.size(),
          .pack = [&rows, value](RowRange range) {
            std::vector<char> packed(range.size() * sizeof(Stored));
            char* next = packed.data();
            for (std::size_t i = range.first; i < range.end; ++i, next += sizeof(Stored)) {
              const Stored stored = value(rows[i]);
              std::memcpy(next, &stored, sizeof(Stored));
            }
            return packed;
          }};
}

void add_sends(std::vector<RoundColumn>& columns, const std::string& group, const std::vector<Send>& sends) {
  columns.push_back(column(group, "chunk", "", sends, [](const Send& s) { return s.chunk.value; }));
  columns.push_back(column(group, "link", "", sends, [](const Send& s) { return s.link.value; }));
  columns.push_back(column(group, "start_us", "us", sends, [](const Send& s) { return s.start_us; }));
  columns.push_back(column(group, "end_us", "us", sends, [](const Send& s) { return s.end_us; }));
  columns.push_back(column(group, "arrival_us", "us", sends, [](const Send& s) { return s.arrival_us; }));
  columns.push_back(
      column(group, "op", "", sends, [](const Send& s) { return static_cast<std::uint8_t>(s.op); }));
  if (have_transfers(sends))
    columns.push_back(column(group, "transfer", "", sends, [](const Send& s) { return s.transfer; }));
  if (have_rates(sends))
    columns.push_back(column(group, "rate_GBps", "GB/s", sends, [](const Send& s) { return s.rate_GBps; }));
}

void add_holdings(std::vector<RoundColumn>& columns, const std::string& group,
                  const std::vector<Holding>& holdings) {
  columns.push_back(column(group, "chunk", "", holdings, [](const Holding& h) { return h.chunk.value; }));
  columns.push_back(column(group, "gpu", "", holdings, [](const Holding& h) { return h.gpu.value; }));
  columns.push_back(column(group, "from_us", "us", holdings, [](const Holding& h) { return h.from_us; }));
}

std::string find_fault(const char* list, const std::vector<Send>& sends) {
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const Send& send = sends[i];
    if (!send.chunk.valid()) return fmt::format("{}/chunk[{}]: {} is no id", list, i, send.chunk.value);
    if (!send.link.valid()) return fmt::format("{}/link[{}]: {} is no id", list, i, send.link.value);
    if (!std::isfinite(send.start_us) || !std::isfinite(send.end_us) || !std::isfinite(send.arrival_us)) {
      return fmt::format("{}[{}]: times {}, {}, {} have to be finite", list, i, send.start_us, send.end_us,
                         send.arrival_us);
    }
    if (send.transfer < kNoTransfer)
      return fmt::format("{}/transfer[{}]: {} is no transfer", list, i, send.transfer);
    if (send.has_rate() && !(send.rate_GBps > 0 && std::isfinite(send.rate_GBps)))
      return fmt::format("{}/rate_GBps[{}]: {} has to be positive and finite", list, i, send.rate_GBps);
  }
  return "";
}

std::string find_fault(const char* list, const std::vector<Holding>& holdings) {
  for (std::size_t i = 0; i < holdings.size(); ++i) {
    const Holding& holding = holdings[i];
    if (!holding.chunk.valid()) return fmt::format("{}/chunk[{}]: {} is no id", list, i, holding.chunk.value);
    if (!holding.gpu.valid()) return fmt::format("{}/gpu[{}]: {} is no id", list, i, holding.gpu.value);
    if (!std::isfinite(holding.from_us)) {
      return fmt::format("{}/from_us[{}]: {} has to be finite", list, i, holding.from_us);
    }
  }
  return std::is_sorted(holdings.begin(), holdings.end())
             ? ""
             : fmt::format("{}: not sorted by (chunk, gpu, from_us)", list);
}

std::string find_fault(const char* list, const std::vector<UnmetDemand>& unmet) {
  for (std::size_t i = 0; i < unmet.size(); ++i) {
    if (!unmet[i].chunk.valid())
      return fmt::format("{}/chunk[{}]: {} is no id", list, i, unmet[i].chunk.value);
    if (!unmet[i].gpu.valid()) return fmt::format("{}/gpu[{}]: {} is no id", list, i, unmet[i].gpu.value);
  }
  return std::is_sorted(unmet.begin(), unmet.end()) ? ""
                                                    : fmt::format("{}: not sorted by (chunk, gpu)", list);
}

std::string find_fault_of_figures(const RoundRecord& record) {
  if (record.chunks < 1) return fmt::format("chunks: {} is less than 1", record.chunks);
  if (record.round < 0) return fmt::format("round: {} is no round", record.round);
  for (const auto& [name, value] : {std::pair{"begin_us", record.begin_us},
                                    {"end_us", record.end_us},
                                    {"bound_us", record.bound_us},
                                    {"state/time_us", record.state.time_us}}) {
    if (!std::isfinite(value)) return fmt::format("{}: {} has to be finite", name, value);
  }
  if (record.end_us < record.begin_us) {
    return fmt::format("end_us: {} is before begin_us, {}", record.end_us, record.begin_us);
  }
  for (std::size_t i = 0; i < record.parts.size(); ++i) {
    if (record.parts[i].rank < 0) {
      return fmt::format("parts/rank[{}]: {} is no rank", i, record.parts[i].rank);
    }
  }
  return "";
}

}  // namespace

RowRange rows_of_rank(std::size_t num_rows, int rank, int num_ranks) {
  const auto r = static_cast<std::size_t>(rank);
  const auto n = static_cast<std::size_t>(num_ranks);
  return {.first = num_rows * r / n, .end = num_rows * (r + 1) / n};
}

std::vector<RoundColumn> columns_of(const RoundRecord& record) {
  std::vector<RoundColumn> columns;
  add_sends(columns, "sends", record.sends);
  if (record.plan) add_sends(columns, "plan", *record.plan);
  add_holdings(columns, "state/buffers", record.state.buffers);
  add_holdings(columns, "state/in_flight", record.state.in_flight);
  const auto& unmet = record.state.unmet;
  columns.push_back(
      column("state/unmet", "chunk", "", unmet, [](const UnmetDemand& u) { return u.chunk.value; }));
  columns.push_back(
      column("state/unmet", "gpu", "", unmet, [](const UnmetDemand& u) { return u.gpu.value; }));
  return columns;
}

std::string find_fault(const RoundRecord& record) {
  std::string fault = find_fault_of_figures(record);
  if (fault.empty()) fault = find_fault("sends", record.sends);
  if (fault.empty() && !std::is_sorted(record.sends.begin(), record.sends.end(), comes_before)) {
    fault = "sends: not sorted by (start_us, link, chunk)";
  }
  if (fault.empty() && record.plan) fault = find_fault("plan", *record.plan);
  if (fault.empty()) fault = find_fault("state/buffers", record.state.buffers);
  if (fault.empty()) fault = find_fault("state/in_flight", record.state.in_flight);
  if (fault.empty()) fault = find_fault("state/unmet", record.state.unmet);
  return fault;
}

}  // namespace rondo
