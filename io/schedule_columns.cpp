#include "schedule_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>
#include <utility>
#include <variant>

#include "column_checks.hpp"
#include "format_version.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMaxTransfers = std::size_t{1} << 31;

void check_sends(const SendColumns& sends, std::size_t num_chunks, std::size_t num_links) {
  const std::size_t n = sends.chunk.size();
  check_length("sends.link", sends.link.size(), n, "sends.chunk");
  check_length("sends.start_us", sends.start_us.size(), n, "sends.chunk");
  check_length("sends.end_us", sends.end_us.size(), n, "sends.chunk");
  check_length("sends.arrival_us", sends.arrival_us.size(), n, "sends.chunk");
  check_length("sends.op", sends.op.size(), n, "sends.chunk");
  check_range("sends.chunk", sends.chunk, num_chunks);
  check_range("sends.link", sends.link, num_links);
  check_range("sends.op", sends.op, 2);
  check_finite("sends.start_us", sends.start_us);
  check_finite("sends.end_us", sends.end_us);
  check_finite("sends.arrival_us", sends.arrival_us);
  if (!sends.transfer.empty()) check_length("sends.transfer", sends.transfer.size(), n, "sends.chunk");
  check_range("sends.transfer", sends.transfer, kMaxTransfers, kNoTransfer);
  if (!sends.rate_GBps.empty()) check_length("sends.rate_GBps", sends.rate_GBps.size(), n, "sends.chunk");
  for (std::size_t i = 0; i < sends.rate_GBps.size(); ++i) {
    const double rate = sends.rate_GBps[i];
    if (std::isnan(rate) || (rate > 0 && std::isfinite(rate))) continue;
    refuse_column(
        fmt::format("sends.rate_GBps[{}] is {}; it has to be positive and finite, or absent", i, rate));
  }
}

bool in_order(const Send& a, const Send& b) {
  return std::tie(a.start_us, a.link, a.chunk) <= std::tie(b.start_us, b.link, b.chunk);
}

SendColumns to_columns(const std::vector<Send>& sends) {
  SendColumns columns;
  for (const Send& send : sends) {
    columns.chunk.push_back(send.chunk.value);
    columns.link.push_back(send.link.value);
    columns.start_us.push_back(send.start_us);
    columns.end_us.push_back(send.end_us);
    columns.arrival_us.push_back(send.arrival_us);
    columns.op.push_back(static_cast<std::int64_t>(send.op));
  }
  if (have_transfers(sends)) {
    for (const Send& send : sends) columns.transfer.push_back(send.transfer);
  }
  if (have_rates(sends)) {
    for (const Send& send : sends) columns.rate_GBps.push_back(send.rate_GBps);
  }
  return columns;
}

std::vector<Send> to_sends(const SendColumns& columns) {
  std::vector<Send> sends;
  sends.reserve(columns.chunk.size());
  for (std::size_t i = 0; i < columns.chunk.size(); ++i) {
    sends.push_back({.chunk = ChunkId(static_cast<std::int32_t>(columns.chunk[i])),
                     .link = LinkId(static_cast<std::int32_t>(columns.link[i])),
                     .start_us = columns.start_us[i],
                     .end_us = columns.end_us[i],
                     .arrival_us = columns.arrival_us[i],
                     .op = static_cast<SendOp>(columns.op[i])});
    if (!columns.transfer.empty()) sends.back().transfer = static_cast<std::int32_t>(columns.transfer[i]);
    if (!columns.rate_GBps.empty()) sends.back().rate_GBps = columns.rate_GBps[i];
    if (i > 0 && !in_order(sends[i - 1], sends[i])) {
      refuse_column(fmt::format(
          "sends[{}] stands after sends[{}], but sends are sorted by (start_us, link, chunk)", i, i - 1));
    }
  }
  return sends;
}

Collective read_collective(const std::string& name) {
  try {
    return parse_collective(name);
  } catch (const Error& error) {
    refuse_column(fmt::format("collective: {}", error.what()));  // of a file, not of the command line
  }
}

void check_prices(const PricesCertificate& prices) {
  check_finite("lower_bound.certificate.from_us", prices.from_us);
  check_finite("lower_bound.certificate.until_us", prices.until_us);
  check_finite("lower_bound.certificate.price", prices.price);
}

void check_lower_bound(const LowerBound& bound) {
  check_finite("lower_bound.us", bound.us);
  if (const auto* cut = std::get_if<CutCertificate>(&bound.certificate)) {
    check_finite("lower_bound.certificate.bytes", cut->bytes);
  }
  if (const auto* metric = std::get_if<MetricCertificate>(&bound.certificate)) {
    check_finite("lower_bound.certificate.length", metric->length);
    check_finite("lower_bound.certificate.from_us", metric->from_us);
  }
  if (const auto* time_cut = std::get_if<TimeCutCertificate>(&bound.certificate)) {
    check_finite("lower_bound.certificate.alpha_us", time_cut->alpha_us);
  }
  if (const auto* prices = std::get_if<PricesCertificate>(&bound.certificate)) check_prices(*prices);
  if (const auto* joint = std::get_if<JointCutsCertificate>(&bound.certificate)) {
    check_prices(joint->prices);
    for (const WeightedTimeCut& cut : joint->cuts) {
      check_finite("lower_bound.certificate.cuts.weight", cut.weight);
      check_finite("lower_bound.certificate.cuts.alpha_us", cut.alpha_us);
    }
  }
  if (const auto* messages = std::get_if<MessagePricesCertificate>(&bound.certificate))
    check_prices(messages->prices);
  if (const auto* knowledge = std::get_if<KnowledgeCertificate>(&bound.certificate)) {
    check_finite("lower_bound.certificate.times_us", knowledge->times_us);
  }
}

// The two figures serve people and other programs; the example of FORMATS.md gives them to five digits, so
// more may not be asked.
void check_figures(const ScheduleColumns& columns) {
  check_finite("finish_us", columns.finish_us);
  if (columns.algorithm_bandwidth_GBps) {
    const double claimed = *columns.algorithm_bandwidth_GBps;
    const double derived = algorithm_bandwidth_GBps(columns.size_bytes, columns.finish_us);
    if (!(std::abs(claimed - derived) <= 1e-4 * std::abs(derived))) {
      refuse_column(
          fmt::format("algorithm_bandwidth_GBps is {}; size_bytes / finish_us gives {}", claimed, derived));
    }
  }
  if (columns.gap) {
    if (!columns.lower_bound) refuse_column("there is a gap, but no lower_bound that it would refer to");
    const double derived = columns.finish_us / columns.lower_bound->us - 1;
    if (!(std::abs(*columns.gap - derived) <= 1e-5)) {
      refuse_column(fmt::format("gap is {}; finish_us / lower_bound.us - 1 gives {}", *columns.gap, derived));
    }
  }
}

}  // namespace

ScheduleColumns to_columns(const ProvenSchedule& proven) {
  ScheduleColumns columns = short_columns(proven);
  columns.chunks = chunk_columns_of(proven.demand);
  columns.sends = to_columns(proven.schedule.sends);
  return columns;
}

ScheduleColumns short_columns(const ProvenSchedule& proven) {
  const Demand& demand = proven.demand;
  assert(std::ranges::is_sorted(proven.schedule.sends,
                                [](const Send& a, const Send& b) { return !in_order(b, a); }));

  ScheduleColumns columns;
  columns.version = version_of(proven);
  columns.producer = proven.producer;
  columns.collective = to_string(demand.collective());
  columns.size_bytes = demand.size_bytes();
  columns.shape = demand.shape();
  columns.uniform_chunk_bytes = demand.uniform_chunk_bytes().has_value();
  if (columns.uniform_chunk_bytes) columns.chunk_bytes = {*demand.uniform_chunk_bytes()};

  if (!columns.uniform_chunk_bytes) {
    for (std::size_t c = 0; c < demand.num_chunks(); ++c)
      columns.chunk_bytes.push_back(demand.bytes(ChunkId(c)));
  }
  columns.chunks = columns_without_destinations(demand);

  columns.finish_us = proven.schedule.finish_us;
  columns.algorithm_bandwidth_GBps = algorithm_bandwidth_GBps(columns.size_bytes, columns.finish_us);
  columns.lower_bound = proven.lower_bound;
  if (proven.lower_bound) columns.gap = columns.finish_us / proven.lower_bound->us - 1;
  return columns;
}

ProvenSchedule to_proven_schedule(Topology topology, const ScheduleColumns& columns) {
  const std::size_t num_chunks = columns.chunks.origin.size();
  if (columns.uniform_chunk_bytes) {
    check_length("chunk_bytes", columns.chunk_bytes.size(), 1, "one figure for all chunks");
  } else {
    check_length("chunk_bytes", columns.chunk_bytes.size(), num_chunks, "chunks.origin");
  }
  check_sends(columns.sends, num_chunks, topology.num_links());
  if (columns.lower_bound) check_lower_bound(*columns.lower_bound);
  check_figures(columns);
  Demand demand(read_collective(columns.collective), columns.size_bytes, topology.num_gpus(),
                to_contributions(columns.chunks, columns.chunk_bytes, topology.num_gpus()), 1, columns.shape);
  return {.topology = std::move(topology),
          .demand = std::move(demand),
          .schedule = {.sends = to_sends(columns.sends), .finish_us = columns.finish_us},
          .lower_bound = columns.lower_bound,
          .producer = columns.producer};
}

}  // namespace rondo
