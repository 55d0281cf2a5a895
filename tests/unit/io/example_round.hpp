#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string>

#include "rondo/core/round.hpp"

namespace rondo {

/// A round of 100 us with something of everything; `num_sends` sends.
inline RoundRecord example_round(std::int64_t round, std::size_t num_sends = 7) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto begin_us = static_cast<double>(round) * 100;
  RoundRecord record{.round = round,
                     .begin_us = begin_us,
                     .end_us = begin_us + 100,
                     .finish_before_us = kNone,
                     .finish_after_us = 1000.0 / 3,
                     .bound_us = 1e-3};
  for (std::size_t i = 0; i < num_sends; ++i) {
    const double start_us = begin_us + 0.1 * static_cast<double>(i / 2);
    record.sends.push_back({.chunk = ChunkId(i * 7 % 1009),
                            .link = LinkId(i % 2),
                            .start_us = start_us,
                            .end_us = start_us + 0.1,
                            .arrival_us = start_us + 0.1 + 1.0 / 7,
                            .op = i % 5 == 4 ? SendOp::reduce : SendOp::copy});
  }
  record.chunks = 4;
  record.plan = std::vector<Send>{record.sends.begin(), record.sends.begin() + (num_sends > 2 ? 3 : 0)};
  record.state = {.time_us = record.end_us,
                  .buffers = {{ChunkId{0}, GpuId{3}, 1.25}, {ChunkId{2}, GpuId{0}, 0}},
                  .in_flight = {{ChunkId{1}, GpuId{2}, record.end_us + 0.3}},
                  .unmet = {{ChunkId{1}, GpuId{0}}, {ChunkId{1}, GpuId{1}}, {ChunkId{9}, GpuId{0}}}};
  record.parts = {{.name = "pop 1 of 2",
                   .outcome = "optimal",
                   .rank = 1,
                   .seconds = 0.125,
                   .columns = 12,
                   .rows = 34,
                   .nodes = 5,
                   .iterations = 77,
                   .transfers_changed = 6,
                   .objective_before = 7.5,
                   .objective_after = 7.25},
                  {.name = "pop 2 of 2",
                   .outcome = "kept the start: time limit (\xC2\xB5s)",
                   .objective_before = kNone,
                   .objective_after = kNone}};
  return record;
}

/// example_round() with transfers, of which one has a rate, among its sends, and without any in its plan.
inline RoundRecord round_with_transfers(std::int64_t round) {
  RoundRecord record = example_round(round);
  record.sends[1].transfer = 3;
  record.sends[2].transfer = 3;
  record.sends[2].rate_GBps = 1.0 / 3;
  return record;
}

/// All of a record, doubles by their bits: equal texts are equal records.
inline std::string text_of(const RoundRecord& record) {
  std::string text;
  const auto add = [&](auto... values) { ((text += std::to_string(values) + " "), ...); };
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const auto add_sends = [&](const char* name, const std::vector<Send>& sends) {
    text += std::string("\n") + name;
    for (const Send& s : sends) {
      text += "\n";
      add(s.chunk.value, s.link.value, bits(s.start_us), bits(s.end_us), bits(s.arrival_us),
          static_cast<int>(s.op), s.transfer, s.has_rate() ? bits(s.rate_GBps) : 0);
    }
  };
  const auto add_holdings = [&](const char* name, const std::vector<Holding>& holdings) {
    text += std::string("\n") + name;
    for (const Holding& h : holdings) {
      text += "\n";
      add(h.chunk.value, h.gpu.value, bits(h.from_us));
    }
  };
  add(record.round, record.chunks, bits(record.begin_us), bits(record.end_us), bits(record.finish_before_us),
      bits(record.finish_after_us), bits(record.bound_us), bits(record.state.time_us));
  add_sends("sends", record.sends);
  if (record.plan) add_sends("plan", *record.plan);
  add_holdings("buffers", record.state.buffers);
  add_holdings("in_flight", record.state.in_flight);
  text += "\nunmet";
  for (const UnmetDemand& u : record.state.unmet) add(u.chunk.value, u.gpu.value);
  for (const RoundPart& p : record.parts) {
    text += "\n" + p.name + " | " + p.outcome + " | ";
    add(p.rank, bits(p.seconds), p.columns, p.rows, p.nodes, p.iterations, p.transfers_changed,
        bits(p.objective_before), bits(p.objective_after));
  }
  return text;
}

}  // namespace rondo
