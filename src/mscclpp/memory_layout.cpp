#include "memory_layout.hpp"

#include <algorithm>

#include "refuse.hpp"

namespace rondo::mscclpp {
namespace {

/// Chunks of an input or output of a collective over all GPUs, and those of one part of it.
struct Side {
  int parts = 0;
  int chunks = 0;  ///< a part
};

Side side_of(const Plan& plan, Collective collective, int g, bool input) {
  const auto gpus = static_cast<std::size_t>(plan.num_gpus());
  const auto parts = static_cast<int>(input ? collective->input_parts(gpus) : collective->output_parts(gpus));
  const Gpu& mine = plan.gpus[static_cast<std::size_t>(g)];
  const int chunks = input ? mine.input_chunks : mine.output_chunks;
  if (chunks % parts != 0) {
    refuse(place(g), "{}_chunks is {}; {} of {} GPUs needs a multiple of {}", input ? "input" : "output",
           chunks, to_string(collective), gpus, parts);
  }
  return {.parts = parts, .chunks = chunks / parts};
}

/// Chunks of a part of the named collective. In place a plan may name one of the two buffers only.
int part_of(const Plan& plan, int g, const Side& input, const Side& output, Collective collective) {
  const int part = std::max(input.chunks, output.chunks);
  const auto fits = [&](const Side& side) {
    return side.chunks == part || (plan.in_place && side.chunks == 0);
  };
  if (part == 0 || !fits(input) || !fits(output)) {
    const Gpu& mine = plan.gpus[static_cast<std::size_t>(g)];
    refuse(place(g), "input_chunks {} and output_chunks {} do not fit {}: parts of {} and of {} chunks",
           mine.input_chunks, mine.output_chunks, to_string(collective), input.chunks, output.chunks);
  }
  return part;
}

}  // namespace

std::vector<Memory> memory_layout(const Plan& plan, Collective collective, std::size_t chunk_bytes) {
  const bool named = collective != Collective::custom;
  std::vector<Memory> layout;
  int first_part = 0;
  for (int g = 0; g < plan.num_gpus(); ++g) {
    const Gpu& mine = plan.gpus[static_cast<std::size_t>(g)];
    if (mine.input_chunks < 0 || mine.output_chunks < 0 || mine.scratch_chunks < 0)
      refuse(place(g), "a buffer of {} chunks",
             std::min({mine.input_chunks, mine.output_chunks, mine.scratch_chunks}));
    int input = mine.input_chunks, output = mine.output_chunks;
    if (named) {
      const Side in = side_of(plan, collective, g, true), out = side_of(plan, collective, g, false);
      const int part = part_of(plan, g, in, out, collective);
      if (g == 0) first_part = part;
      if (part != first_part) refuse(place(g), "parts of {} chunks, but gpu 0 has {}", part, first_part);
      input = part * in.parts;
      output = part * out.parts;
    } else if (input == 0 && output == 0) {
      refuse(place(g), "input_chunks and output_chunks are 0, so that chunks have no size");
    }
    Memory memory;
    memory.input_bytes = static_cast<std::size_t>(input) * chunk_bytes;
    memory.output_bytes = static_cast<std::size_t>(output) * chunk_bytes;
    memory.output = memory.input_bytes;
    if (plan.in_place) {
      const auto own = static_cast<std::size_t>(g);
      memory.output = named && collective->output_in_input() ? own * memory.output_bytes : 0;
      memory.input = named && collective->input_in_output() ? own * memory.input_bytes : 0;
    }
    memory.scratch = std::max(memory.input + memory.input_bytes, memory.output + memory.output_bytes);
    const std::size_t scratch = static_cast<std::size_t>(mine.scratch_chunks) * chunk_bytes;
    memory.packets = memory.scratch + scratch;
    memory.bytes = memory.packets + (plan.packets ? scratch : 0);
    layout.push_back(memory);
  }
  return layout;
}

}  // namespace rondo::mscclpp
