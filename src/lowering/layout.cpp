#include "layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "rondo/core/error.hpp"

namespace rondo::lowering {
namespace {

using msccl::Buffer;
using msccl::Range;

/// Bytes beyond this are no longer whole numbers in a double.
constexpr double kLargestWhole = 9e15;
/// Of a buffer, so that offsets stay far from the end of int; executors take much less.
constexpr std::int64_t kMaxChunks = 100'000'000;

/// Contributions of different sizes in their greatest common unit.
std::vector<int> lengths_of(const Demand& demand) {
  const auto& contributions = demand.contributions();
  std::vector<int> lengths(contributions.size(), 1);
  const double first = contributions.front().bytes;
  if (std::all_of(contributions.begin(), contributions.end(),
                  [&](const Contribution& c) { return c.bytes == first; })) {
    return lengths;
  }
  std::int64_t unit = 0;
  for (const Contribution& c : contributions) {
    if (c.bytes != std::floor(c.bytes) || c.bytes > kLargestWhole) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("contributions of {} and {} bytes have no common unit, and MSCCL chunks are all equal; "
                      "use whole numbers of bytes",
                      first, c.bytes));
    }
    unit = std::gcd(unit, static_cast<std::int64_t>(c.bytes));
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::int64_t length = static_cast<std::int64_t>(contributions[i].bytes) / unit;
    if (length > kMaxChunks) {
      throw Error(ExitCode::unavailable,
                  fmt::format("a contribution of {} bytes is {} times the common unit of {} bytes; use "
                              "contributions with a larger common divisor",
                              contributions[i].bytes, length, unit));
    }
    lengths[i] = static_cast<int>(length);
  }
  return lengths;
}

/// Which part of an input goes to which part of an output.
class Parts {
 public:
  explicit Parts(const Demand& demand)
      : table_(demand.collective(), demand.num_gpus(), root_of(demand)), sums_(demand.num_gpus()) {
    demand.collective()->for_each_output_part(
        demand.num_gpus(), root_of(demand).index(), [&](const OutputPart& to, const InputPart& from) {
          if (from.gpu != InputPart::kSumOfAll) return;
          sums_[to.gpu] = {static_cast<int>(from.part), static_cast<int>(to.part)};
        });
  }

  PartTable::Places of(const Contribution& contribution, GpuId to) const {
    return contribution.reduce ? sums_[to.index()] : table_.between(contribution.origin, to);
  }
  /// What a GPU keeps of its own input.
  std::optional<PartTable::Places> own(GpuId gpu) const { return table_.find(gpu, gpu); }

 private:
  PartTable table_;
  std::vector<PartTable::Places> sums_;  ///< per destination
};

/// Whether the output of every GPU keeps all that the GPU sends, or holds the sum of it in the end, so that
/// it may be the same memory as the input.
bool keeps_what_it_sends(const Demand& demand) {
  const Parts parts(demand);
  return std::ranges::all_of(demand.contributions(), [&](const Contribution& c) {
    const auto own = parts.own(c.origin);
    return c.reduce || (own && own->input_part == parts.of(c, c.destinations.front()).input_part);
  });
}

}  // namespace

Layout::Layout(const Demand& demand, const Options& options)
    : chunks_(demand.chunks_per_contribution()),
      length_(lengths_of(demand)),
      stride_(length_.size()),
      home_(length_.size()),
      output_of_(length_.size()),
      input_chunks_(demand.num_gpus(), 0),
      output_chunks_(demand.num_gpus(), 0) {
  if (options.in_place && (options.in_turn || !keeps_what_it_sends(demand))) {
    throw Error(
        ExitCode::usage,
        fmt::format("{} in place is not known; --placement in-place is for collectives whose outputs keep "
                    "what their GPUs send or its sum, such as allgather, broadcast and allreduce",
                    to_string(demand.collective())));
  }
  const std::int64_t total = std::accumulate(length_.begin(), length_.end(), std::int64_t{0}) * chunks_;
  if (total * options.instances > kMaxChunks) {
    throw Error(ExitCode::unavailable, fmt::format("{} chunks in {} instances are more than {}; use fewer",
                                                   total, options.instances, kMaxChunks));
  }
  if (options.in_turn) {
    place_in_turn(demand, options.instances);
  } else {
    place_named(demand, options);
  }
}

void Layout::place_named(const Demand& demand, const Options& options) {
  const Collective collective = demand.collective();
  const std::size_t gpus = demand.num_gpus();
  const GpuId root = root_of(demand);
  const Parts parts(demand);

  // A part may come in several contributions, one after another.
  std::map<std::pair<int, int>, int> part_size;  // of part (origin, in its input)
  std::vector<int> place_in_part(home_.size());
  for (std::size_t j = 0; j < home_.size(); ++j) {
    const Contribution& contribution = demand.contributions()[j];
    const auto places = parts.of(contribution, contribution.destinations.front());
    int& size = part_size[{contribution.origin.value, places.input_part}];
    place_in_part[j] = size;
    size += chunks_ * length_[j];
  }
  const int stride = part_size.begin()->second;
  for (const auto& [ends, size] : part_size) {
    if (size == stride) continue;
    throw Error(ExitCode::unavailable,
                fmt::format("GPU {} gives {} chunks and another GPU {}; the parts of {} have to be equal",
                            ends.first, size, stride, to_string(collective)));
  }
  const int part = options.instances * stride;

  for (std::size_t j = 0; j < home_.size(); ++j) {
    const Contribution& contribution = demand.contributions()[j];
    stride_[j] = stride;
    const auto output_at = [&](GpuId to) {
      return Range{.buffer = Buffer::output,
                   .offset = parts.of(contribution, to).output_part * part + place_in_part[j]};
    };
    for (const GpuId to : contribution.destinations) output_of_[j].emplace_back(to.value, output_at(to));
    const int input = parts.of(contribution, contribution.destinations.front()).input_part;
    for (const GpuId from : contribution.all_sources()) {
      const bool in_output =
          options.in_place &&
          (!contribution.reduce || std::ranges::binary_search(contribution.destinations, from));
      home_[j].emplace_back(
          from.value, in_output ? output_at(from)
                                : Range{.buffer = Buffer::input, .offset = input * part + place_in_part[j]});
    }
  }

  for (std::size_t g = 0; g < gpus; ++g) {
    const auto chunks = [&](std::size_t number) { return part * static_cast<int>(number); };
    if (collective->has_input(g, root.index())) input_chunks_[g] = chunks(collective->input_parts(gpus));
    if (collective->has_output(g, root.index())) output_chunks_[g] = chunks(collective->output_parts(gpus));
    const auto own = parts.own(GpuId(g));
    if (own && !options.in_place) {
      own_copies_.push_back({.gpu = static_cast<int>(g),
                             .src = {.buffer = Buffer::input, .offset = own->input_part * part},
                             .dst = {.buffer = Buffer::output, .offset = own->output_part * part},
                             .count = part});
    }
  }
}

void Layout::place_in_turn(const Demand& demand, int instances) {
  for (std::size_t j = 0; j < home_.size(); ++j) {
    const Contribution& contribution = demand.contributions()[j];
    stride_[j] = chunks_ * length_[j];
    const int block = instances * stride_[j];
    for (const GpuId from : contribution.all_sources()) {
      int& input = input_chunks_[from.index()];
      home_[j].emplace_back(from.value, Range{.buffer = Buffer::input, .offset = input});
      input += block;
    }
    for (const GpuId to : contribution.destinations) {
      int& output = output_chunks_[to.index()];
      output_of_[j].emplace_back(to.value, Range{.buffer = Buffer::output, .offset = output});
      output += block;
    }
  }
}

int Layout::chunks_per_loop() const {
  return std::max(*std::max_element(input_chunks_.begin(), input_chunks_.end()),
                  *std::max_element(output_chunks_.begin(), output_chunks_.end()));
}

std::optional<Range> Layout::find(const Places& places, int chunk, int gpu) const {
  const auto found = std::ranges::lower_bound(places, gpu, {}, &Places::value_type::first);
  if (found == places.end() || found->first != gpu) return std::nullopt;
  return Range{.buffer = found->second.buffer,
               .offset = found->second.offset + offset_in_contribution(chunk)};
}

std::optional<Range> Layout::home(int chunk, int gpu) const {
  return find(home_[contribution_of(chunk)], chunk, gpu);
}

std::optional<Range> Layout::wanted_at(int chunk, int gpu) const {
  return find(output_of_[contribution_of(chunk)], chunk, gpu);
}

}  // namespace rondo::lowering
