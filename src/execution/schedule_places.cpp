#include "schedule_places.hpp"

#include <algorithm>
#include <cmath>

#include "layout.hpp"

namespace rondo::execution {

SchedulePlaces::SchedulePlaces(const ProvenSchedule& proven, const std::vector<rondo::Delivery>& moved,
                               double bytes, Program& program)
    : proven_(proven),
      program_(program),
      gpus_(proven.topology.num_gpus()),
      table_(program.coll, gpus_, root_of(proven.demand)),
      sums_(gpus_),
      offset_(demand().num_chunks()),
      bytes_(demand().num_chunks()),
      gathered_(demand().num_chunks() * gpus_, kNowhere),
      arrival_(moved.size(), kNowhere) {
  program.coll->for_each_output_part(
      gpus_, root_of(demand()).index(), [&](const OutputPart& to, const InputPart& from) {
        if (from.gpu != InputPart::kSumOfAll) return;
        sums_[to.gpu] = {static_cast<int>(from.part), static_cast<int>(to.part)};
      });
  const std::size_t unit = program.combines ? program.arithmetic.size() : 1;
  if (is_custom()) {
    cut_custom(bytes, unit);
  } else {
    cut_blocks(bytes, unit);
  }
  place(moved);
}

PartTable::Places SchedulePlaces::parts_of(ChunkId c, GpuId to) const {
  return demand().contribution(c).reduce ? sums_[to.index()] : table_.between(demand().origin(c), to);
}

SchedulePlaces::Block SchedulePlaces::block_of(ChunkId c) const {
  return {demand().origin(c).value, parts_of(c, demand().destinations(c).front()).input_part};
}

void SchedulePlaces::cut_custom(double bytes, std::size_t unit) {
  for (std::size_t c = 0; c < bytes_.size(); ++c) {
    bytes_[c] = rounded_up(demand().bytes(ChunkId(c)) * bytes / demand().size_bytes(), unit);
    program_.size_bytes += bytes_[c];
  }
}

/// All blocks of a named collective are alike.
void SchedulePlaces::cut_blocks(double bytes, std::size_t unit) {
  std::map<Block, std::vector<std::size_t>> blocks;
  for (std::size_t c = 0; c < bytes_.size(); ++c) blocks[block_of(ChunkId(c))].push_back(c);
  std::size_t most = 1;
  for (const auto& [block, members] : blocks) most = std::max(most, members.size());
  const std::size_t num_parts = program_.coll->num_parts(gpus_);
  const double share = bytes / static_cast<double>(num_parts);
  block_bytes_ = most * rounded_up(share / static_cast<double>(most), unit);
  program_.size_bytes = block_bytes_ * num_parts;
  const auto units = static_cast<double>(block_bytes_ / unit);
  for (const auto& [block, members] : blocks) {
    double total = 0;
    for (const std::size_t c : members) total += demand().bytes(ChunkId(c));
    double sum = 0;
    std::size_t begin = 0;
    for (const std::size_t c : members) {
      sum += demand().bytes(ChunkId(c));
      const std::size_t end = unit * static_cast<std::size_t>(std::llround(units * sum / total));
      offset_[c] = begin;
      bytes_[c] = end - begin;
      begin = end;
    }
  }
}

std::size_t SchedulePlaces::home(ChunkId c, GpuId gpu) const {
  const auto sources = demand().contribution(c).all_sources();
  const auto source = std::ranges::lower_bound(sources, gpu);
  if (source == sources.end() || *source != gpu) return kNowhere;
  const std::size_t from =
      is_custom() ? custom_home_[c.index()][static_cast<std::size_t>(source - sources.begin())]
                  : static_cast<std::size_t>(block_of(c).second) * block_bytes_ + offset_[c.index()];
  return program_.input[gpu.index()].offset + from;
}

void SchedulePlaces::place(const std::vector<rondo::Delivery>& moved) {
  std::vector<std::size_t> input(gpus_, block_bytes_ * program_.coll->input_parts(gpus_)),
      output(gpus_, block_bytes_ * program_.coll->output_parts(gpus_));
  if (is_custom()) place_custom(input, output);
  std::vector<std::size_t> scratch(gpus_, 0);
  std::vector<std::pair<ChunkId, GpuId>> relayed;
  const auto take = [&](GpuId gpu, ChunkId c) {
    scratch[gpu.index()] += bytes(c);
    return scratch[gpu.index()] - bytes(c);
  };
  for (std::size_t d = 0; d < moved.size(); ++d) {
    const ChunkId c = moved[d].chunk;
    const GpuId gpu = moved[d].dst;
    if (demand().contribution(c).reduce) arrival_[d] = take(gpu, c);
    if (std::ranges::binary_search(demand().destinations(c), gpu) || gathered(c, gpu) != kNowhere) continue;
    gathered_at(c, gpu) = take(gpu, c);
    relayed.emplace_back(c, gpu);
  }
  lay_out(program_, input, output, scratch);
  for (const auto& [c, gpu] : relayed) gathered_at(c, gpu) += scratch_begin(program_, gpu.value);
  for (std::size_t d = 0; d < moved.size(); ++d) {
    if (arrival_[d] != kNowhere) arrival_[d] += scratch_begin(program_, moved[d].dst.value);
  }
  for (std::size_t c = 0; c < bytes_.size(); ++c) {
    for (const GpuId gpu : demand().destinations(ChunkId(c))) {
      std::size_t& at = gathered_at(ChunkId(c), gpu);
      if (!is_custom())
        at = static_cast<std::size_t>(parts_of(ChunkId(c), gpu).output_part) * block_bytes_ + offset_[c];
      at += program_.output[gpu.index()].offset;
    }
  }
  add_deliveries(program_, block_bytes_);
}

/// Inputs hold what starts at the GPU, outputs what ends there, in the order of the chunks.
void SchedulePlaces::place_custom(std::vector<std::size_t>& input, std::vector<std::size_t>& output) {
  input.assign(gpus_, 0);
  output.assign(gpus_, 0);
  for (std::size_t c = 0; c < bytes_.size(); ++c) {
    const Contribution& contribution = demand().contribution(ChunkId(c));
    std::vector<InputPlace> from;
    custom_home_.emplace_back();
    for (const GpuId gpu : contribution.all_sources()) {
      from.push_back({gpu.value, input[gpu.index()]});
      custom_home_.back().push_back(input[gpu.index()]);
      input[gpu.index()] += bytes_[c];
    }
    if (!contribution.reduce) {
      for (std::size_t k = 1; k < from.size(); ++k)
        program_.same_data.push_back({.place = from[k], .as = from.front(), .bytes = bytes_[c]});
      from.resize(1);
    }
    for (const GpuId gpu : contribution.destinations) {
      program_.deliveries.push_back({from, gpu.value, output[gpu.index()], bytes_[c]});
      gathered_at(ChunkId(c), gpu) = output[gpu.index()];
      output[gpu.index()] += bytes_[c];
    }
  }
}

}  // namespace rondo::execution
