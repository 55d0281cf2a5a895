#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "layout.hpp"
#include "rondo/core/causes.hpp"
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
    const Topology& topology = proven_.topology;
    const auto& sends = proven_.schedule.sends;
    const auto cause = causes(proven_);
    std::vector<std::size_t> order;  // sends that end at a GPU, by the start of their transfer
    std::vector<std::size_t> first(sends.size());
    for (std::size_t s = 0; s < sends.size(); ++s) {
      std::size_t at = s;
      while (!topology.is_gpu(topology.link(sends[at].link).src) && cause[at] >= 0) {
        at = static_cast<std::size_t>(cause[at]);
      }
      first[s] = at;
      const bool from_gpu = topology.is_gpu(topology.link(sends[at].link).src);
      if (from_gpu && topology.is_gpu(topology.link(sends[s].link).dst)) order.push_back(s);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return sends[first[a]].start_us < sends[first[b]].start_us;
    });

    std::map<std::int32_t, int> lane_of_link;
    std::map<std::pair<std::int32_t, int>, int> connection_of;  // (first link, GPU at the end)
    std::vector<int> receiving_lane;                            // per connection
    std::vector<StepRef> receipt(sends.size());
    const auto new_lane = [&](int gpu) {
      result_.lanes.push_back({.gpu = gpu});
      return static_cast<int>(result_.lanes.size()) - 1;
    };
    std::vector<std::pair<std::size_t, StepRef>> departures;
    std::map<std::pair<std::size_t, int>, double> earliest;  // (chunk, GPU): when it is there first
    for (const std::size_t s : order) {
      const auto key = std::pair(sends[s].chunk.index(), end_of(s));
      const auto [it, is_new] = earliest.try_emplace(key, sends[s].arrival_us);
      if (!is_new) it->second = std::min(it->second, sends[s].arrival_us);
    }
    for (const std::size_t s : order) {
      const Send& start = sends[first[s]];
      const std::size_t c = start.chunk.index();
      const int from = topology.gpu_of(topology.link(start.link).src).value;
      const int to = end_of(s);
      const auto lane = lane_of_link.try_emplace(start.link.value, -1).first;
      if (lane->second < 0) lane->second = new_lane(from);
      const auto connection =
          connection_of.try_emplace({start.link.value, to}, static_cast<int>(result_.connections.size()))
              .first;
      if (connection->second == static_cast<int>(result_.connections.size())) {
        result_.connections.push_back({from, to});
        receiving_lane.push_back(new_lane(to));
      }
      const std::string name = fmt::format("chunk {} from gpu {} to gpu {}", c, from, to);
      // Only the first copy of a chunk is kept; an origin keeps its own.
      double& kept = earliest[{c, to}];
      const bool keeps = to != origin(c).value && sends[s].arrival_us == kept;
      if (keeps) kept = -1;
      auto& sending = result_.lanes[static_cast<std::size_t>(lane->second)].steps;
      departures.emplace_back(s, StepRef{lane->second, static_cast<int>(sending.size())});
      sending.push_back({.send_to = connection->second,
                         .src = held(c, static_cast<std::size_t>(from)),
                         .bytes = bytes_[c],
                         .name = name + " (send)"});
      auto& receiving =
          result_
              .lanes[static_cast<std::size_t>(receiving_lane[static_cast<std::size_t>(connection->second)])];
      receipt[s] = {receiving_lane[static_cast<std::size_t>(connection->second)],
                    static_cast<int>(receiving.steps.size())};
      receiving.steps.push_back({.receive_from = connection->second,
                                 .dst = keeps ? held(c, static_cast<std::size_t>(to)) : kNowhere,
                                 .bytes = bytes_[c],
                                 .name = name + " (receive)"});
      if (keeps) arrived_[{c, to}] = receipt[s];
    }
    // A chunk leaves once it is there. What never comes is waited for by a step that waits for itself.
    for (const auto& [s, step] : departures) {
      const Send& start = sends[first[s]];
      const int from = topology.gpu_of(topology.link(start.link).src).value;
      if (from == origin(start.chunk.index()).value) continue;
      const auto arrival = arrived_.find({start.chunk.index(), from});
      result_.lanes[static_cast<std::size_t>(step.lane)]
          .steps[static_cast<std::size_t>(step.step)]
          .after.push_back(arrival == arrived_.end() ? step : arrival->second);
    }
  }

  int end_of(std::size_t s) const {
    return proven_.topology.gpu_of(proven_.topology.link(proven_.schedule.sends[s].link).dst).value;
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
  std::map<std::pair<std::size_t, int>, StepRef> arrived_;
};

}  // namespace

Program from_schedule(const ProvenSchedule& proven, double bytes) {
  return FromSchedule(proven, bytes).translate();
}

}  // namespace rondo::execution
