#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "layout.hpp"
#include "rondo/core/transfers.hpp"
#include "rondo/execution/program.hpp"

namespace rondo::execution {
namespace {

/// Chunks that follow one another in one part of an input: (origin, part). A chunk of a custom demand is one
/// of its own.
using Block = std::pair<int, int>;

class FromSchedule {
 public:
  FromSchedule(const ProvenSchedule& proven, double bytes)
      : proven_(proven),
        gpus_(proven.topology.num_gpus()),
        chunks_(proven.demand.num_chunks()),
        parts_(proven.demand.collective(), gpus_, root_of(proven.demand)) {
    result_.name = proven.topology.name();
    result_.coll = proven.demand.collective();
    result_.root = root_of(proven.demand).value;
    cut_blocks(bytes);
    place_chunks();
  }

  Program translate() && {
    add_own_parts();
    add_transfers();
    return std::move(result_);
  }

 private:
  const Demand& demand() const { return proven_.demand; }
  bool is_custom() const { return result_.coll == Collective::custom; }
  GpuId origin(std::size_t c) const { return demand().origin(ChunkId(c)); }

  Block block_of(std::size_t c) const {
    if (is_custom()) return {static_cast<int>(c), 0};
    return {origin(c).value, parts_.between(origin(c), demand().destinations(ChunkId(c)).front()).input_part};
  }

  /// Sizes and places of the chunks inside their blocks: all blocks of a named collective are alike.
  void cut_blocks(double bytes) {
    std::map<Block, std::vector<std::size_t>> blocks;
    for (std::size_t c = 0; c < chunks_; ++c) blocks[block_of(c)].push_back(c);
    std::size_t most = 1;
    for (const auto& [block, members] : blocks) most = std::max(most, members.size());
    const std::size_t num_parts = result_.coll->num_parts(gpus_);
    const double share = bytes / static_cast<double>(num_parts);
    block_bytes_ = most * static_cast<std::size_t>(std::ceil(share / static_cast<double>(most)));
    result_.size_bytes = block_bytes_ * num_parts;
    offset_.resize(chunks_);
    bytes_.resize(chunks_);
    if (is_custom()) {
      result_.size_bytes = 0;
      for (std::size_t c = 0; c < chunks_; ++c) {
        bytes_[c] =
            static_cast<std::size_t>(std::ceil(demand().bytes(ChunkId(c)) * bytes / demand().size_bytes()));
        result_.size_bytes += bytes_[c];
      }
      return;
    }
    for (const auto& [block, members] : blocks) {
      double total = 0;
      for (const std::size_t c : members) total += demand().bytes(ChunkId(c));
      double sum = 0;
      std::size_t begin = 0;
      for (const std::size_t c : members) {
        sum += demand().bytes(ChunkId(c));
        const auto end =
            static_cast<std::size_t>(std::llround(static_cast<double>(block_bytes_) * sum / total));
        offset_[c] = begin;
        bytes_[c] = end - begin;
        begin = end;
      }
    }
  }

  /// The chunk's place in the input of its origin and in the output of a destination.
  std::size_t in_input(std::size_t c) const {
    return static_cast<std::size_t>(block_of(c).second) * block_bytes_ + offset_[c];
  }
  std::size_t in_output(std::size_t c, GpuId to) const {
    return static_cast<std::size_t>(parts_.between(origin(c), to).output_part) * block_bytes_ + offset_[c];
  }

  std::size_t& held(std::size_t c, std::size_t gpu) { return held_[c * gpus_ + gpu]; }

  /// Buffers, and where every GPU that comes to hold a chunk keeps it: its destinations in their output,
  /// relays in scratch.
  void place_chunks() {
    std::vector<std::size_t> input(gpus_, block_bytes_ * result_.coll->input_parts(gpus_)),
        output(gpus_, block_bytes_ * result_.coll->output_parts(gpus_));
    held_.assign(chunks_ * gpus_, kNowhere);
    if (is_custom()) place_custom(input, output);
    std::vector<std::size_t> scratch(gpus_, 0);
    std::vector<std::pair<std::size_t, std::size_t>> relayed;  // (chunk, GPU)
    for (const Send& send : proven_.schedule.sends) {
      const GpuId gpu = proven_.topology.gpu_of(proven_.topology.link(send.link).dst);
      const std::size_t c = send.chunk.index();
      const auto wanted = demand().destinations(send.chunk);
      if (!gpu.valid() || gpu == origin(c) || std::binary_search(wanted.begin(), wanted.end(), gpu)) continue;
      if (held(c, gpu.index()) != kNowhere) continue;
      held(c, gpu.index()) = scratch[gpu.index()];
      scratch[gpu.index()] += bytes_[c];
      relayed.emplace_back(c, gpu.index());
    }
    lay_out(result_, input, output, scratch);
    for (const auto& [c, gpu] : relayed) held(c, gpu) += scratch_begin(result_, static_cast<int>(gpu));
    for (std::size_t c = 0; c < chunks_; ++c) {
      const std::size_t from = is_custom() ? custom_input_[c] : in_input(c);
      held(c, origin(c).index()) = result_.input[origin(c).index()].offset + from;
      if (is_custom()) continue;
      for (const GpuId d : demand().destinations(ChunkId(c))) {
        held(c, d.index()) = result_.output[d.index()].offset + in_output(c, d);
      }
    }
    for (const Delivery& delivery : result_.deliveries) {
      const auto to = static_cast<std::size_t>(delivery.to);
      held(custom_chunk_[static_cast<std::size_t>(&delivery - result_.deliveries.data())], to) =
          result_.output[to].offset + delivery.output;
    }
  }

  /// Inputs hold what starts at the GPU, outputs what ends there, in the order of the chunks.
  void place_custom(std::vector<std::size_t>& input, std::vector<std::size_t>& output) {
    input.assign(gpus_, 0);
    output.assign(gpus_, 0);
    for (std::size_t c = 0; c < chunks_; ++c) {
      std::size_t& from = input[origin(c).index()];
      custom_input_.push_back(from);
      for (const GpuId d : demand().destinations(ChunkId(c))) {
        result_.deliveries.push_back({origin(c).value, from, d.value, output[d.index()], bytes_[c]});
        custom_chunk_.push_back(c);
        output[d.index()] += bytes_[c];
      }
      from += bytes_[c];
    }
  }

  /// What a GPU sends to itself in the collective is no part of a schedule.
  void add_own_parts() {
    add_deliveries(result_, block_bytes_);
    if (is_custom()) return;
    for (const Delivery& delivery : result_.deliveries) {
      if (delivery.from != delivery.to) continue;
      const auto g = static_cast<std::size_t>(delivery.to);
      result_.lanes.push_back({.gpu = delivery.to,
                               .steps = {{.src = result_.input[g].offset + delivery.input,
                                          .dst = result_.output[g].offset + delivery.output,
                                          .bytes = delivery.bytes,
                                          .name = fmt::format("the own part of gpu {}", g)}}});
    }
  }

  /// A lane a link for what begins there, in its order; a lane for what arrives on each connection.
  void add_transfers() {
    const auto& sends = proven_.schedule.sends;
    const std::vector<rondo::Delivery> moved = transfers_of(proven_.topology, demand(), sends).deliveries;
    const ChunkGpuTable<int> first = first_arrivals(demand(), moved);
    std::map<std::int32_t, int> lane_of_link;
    std::map<std::pair<std::int32_t, int>, int> connection_of;  // (first link, GPU at the end)
    std::vector<int> receiving_lane;                            // per connection
    std::vector<StepRef> departures, receipts;                  // per delivery
    const auto new_lane = [&](int gpu) {
      result_.lanes.push_back({.gpu = gpu});
      return static_cast<int>(result_.lanes.size()) - 1;
    };
    const auto append = [&](int lane, Step step) {
      auto& steps = result_.lanes[index(lane)].steps;
      steps.push_back(std::move(step));
      return StepRef{lane, static_cast<int>(steps.size()) - 1};
    };
    for (const rondo::Delivery& delivery : moved) {
      const std::size_t c = delivery.chunk.index();
      const GpuId src = delivery.src;
      const GpuId dst = delivery.dst;
      const LinkId link = sends[index(delivery.first_send)].link;
      const auto lane = lane_of_link.try_emplace(link.value, -1).first;
      if (lane->second < 0) lane->second = new_lane(src.value);
      const int connections = static_cast<int>(result_.connections.size());
      const int connection = connection_of.try_emplace({link.value, dst.value}, connections).first->second;
      if (connection == connections) {
        result_.connections.push_back({src.value, dst.value});
        receiving_lane.push_back(new_lane(dst.value));
      }
      const std::string name = fmt::format("chunk {} from gpu {} to gpu {}", c, src.value, dst.value);
      // Only the first copy of a chunk is kept; an origin keeps its own.
      const bool keeps = dst != origin(c) && first(delivery.chunk, dst) == static_cast<int>(receipts.size());
      departures.push_back(append(lane->second, {.send_to = connection,
                                                 .src = held(c, src.index()),
                                                 .bytes = bytes_[c],
                                                 .name = name + " (send)"}));
      receipts.push_back(
          append(receiving_lane[index(connection)], {.receive_from = connection,
                                                     .dst = keeps ? held(c, dst.index()) : kNowhere,
                                                     .bytes = bytes_[c],
                                                     .name = name + " (receive)"}));
    }
    // A chunk leaves once it is there. What never comes is waited for by a step that waits for itself.
    for (std::size_t d = 0; d < moved.size(); ++d) {
      if (moved[d].src == origin(moved[d].chunk.index())) continue;
      const StepRef step = departures[d];
      const int arrival = first(moved[d].chunk, moved[d].src);
      result_.lanes[index(step.lane)].steps[index(step.step)].after.push_back(
          arrival < 0 ? step : receipts[index(arrival)]);
    }
  }

  const ProvenSchedule& proven_;
  std::size_t gpus_;
  std::size_t chunks_;
  PartTable parts_;
  Program result_;
  std::size_t block_bytes_ = 0;
  std::vector<std::size_t> offset_, bytes_;  ///< per chunk, in its block
  std::vector<std::size_t> held_;            ///< per (chunk, GPU): place in its memory
  std::vector<std::size_t> custom_input_;    ///< per chunk
  std::vector<std::size_t> custom_chunk_;    ///< per delivery
};

}  // namespace

Program from_schedule(const ProvenSchedule& proven, double bytes) {
  return FromSchedule(proven, bytes).translate();
}

}  // namespace rondo::execution
