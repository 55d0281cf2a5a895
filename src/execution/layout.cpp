#include "layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo::execution {
namespace {

using msccl::Coll;

constexpr double kMostUserBytes = 2e9;
constexpr double kMostMemory = 6e9;

}  // namespace

void lay_out(Program& program, const std::vector<std::size_t>& input, const std::vector<std::size_t>& output,
             const std::vector<std::size_t>& scratch) {
  double user = 0;
  double all = 0;
  for (std::size_t g = 0; g < input.size(); ++g) {
    user += static_cast<double>(std::max(input[g], output[g]));
    all += static_cast<double>(input[g]) + static_cast<double>(output[g]) + static_cast<double>(scratch[g]);
  }
  if (user > kMostUserBytes || all > kMostMemory) {
    throw Error(
        ExitCode::unavailable,
        fmt::format(
            "{} GPUs with buffers of {} would have {} in all, with what is relayed {}; at most {} and {} "
            "are executed: choose a smaller --bytes",
            input.size(), format_size(user / static_cast<double>(input.size())), format_size(user),
            format_size(all), format_size(kMostUserBytes), format_size(kMostMemory)));
  }
  const bool in_output = program.coll == Coll::allgather || program.coll == Coll::gather;
  const bool in_input = program.coll == Coll::reduce_scatter || program.coll == Coll::scatter;
  for (std::size_t g = 0; g < input.size(); ++g) {
    Region in{0, input[g]};
    Region out{input[g], output[g]};
    if (program.in_place) {
      out.offset = in_input ? g * output[g] : 0;
      in.offset = in_output ? g * input[g] : 0;
    }
    program.input.push_back(in);
    program.output.push_back(out);
    program.memory.push_back(std::max(in.offset + in.bytes, out.offset + out.bytes) + scratch[g]);
  }
}

std::size_t scratch_begin(const Program& program, int gpu) {
  const auto g = static_cast<std::size_t>(gpu);
  return std::max(program.input[g].offset + program.input[g].bytes,
                  program.output[g].offset + program.output[g].bytes);
}

}  // namespace rondo::execution
