#include "layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"

namespace rondo::execution {
namespace {

constexpr double kMostUserBytes = 2e9;
constexpr double kMostMemory = 6e9;

}  // namespace

void check_room(std::size_t gpus, double user, double all) {
  if (user <= kMostUserBytes && all <= kMostMemory) return;
  throw Error(
      ExitCode::unavailable,
      fmt::format(
          "{} GPUs with buffers of {} would have {} in all, with what is relayed {}; at most {} and {} "
          "are executed: choose a smaller --bytes",
          gpus, format_size(user / static_cast<double>(gpus)), format_size(user), format_size(all),
          format_size(kMostUserBytes), format_size(kMostMemory)));
}

void lay_out(Program& program, const std::vector<std::size_t>& input, const std::vector<std::size_t>& output,
             const std::vector<std::size_t>& scratch) {
  double user = 0;
  double all = 0;
  for (std::size_t g = 0; g < input.size(); ++g) {
    user += static_cast<double>(std::max(input[g], output[g]));
    all += static_cast<double>(input[g]) + static_cast<double>(output[g]) + static_cast<double>(scratch[g]);
  }
  check_room(input.size(), user, all);
  for (std::size_t g = 0; g < input.size(); ++g) {
    Region in{0, input[g]};
    Region out{input[g], output[g]};
    if (program.in_place) {
      out.offset = program.coll->output_in_input() ? g * output[g] : 0;
      in.offset = program.coll->input_in_output() ? g * input[g] : 0;
    }
    program.input.push_back(in);
    program.output.push_back(out);
    program.memory.push_back(std::max(in.offset + in.bytes, out.offset + out.bytes) + scratch[g]);
  }
}

void add_deliveries(Program& program, std::size_t part_bytes) {
  program.coll->for_each_output_part(program.memory.size(), static_cast<std::size_t>(program.root),
                                     [&](const OutputPart& to, const InputPart& from) {
                                       Delivery delivery{.to = static_cast<int>(to.gpu),
                                                         .output = to.part * part_bytes,
                                                         .bytes = part_bytes};
                                       const bool is_sum = from.gpu == InputPart::kSumOfAll;
                                       for (int g = 0; g < program.num_gpus(); ++g) {
                                         if (is_sum || static_cast<int>(from.gpu) == g)
                                           delivery.from.push_back({g, from.part * part_bytes});
                                       }
                                       program.deliveries.push_back(std::move(delivery));
                                     });
}

std::size_t rounded_up(double bytes, std::size_t unit) {
  return unit * static_cast<std::size_t>(std::ceil(bytes / static_cast<double>(unit)));
}

std::size_t scratch_begin(const Program& program, int gpu) {
  const auto g = static_cast<std::size_t>(gpu);
  return std::max(program.input[g].offset + program.input[g].bytes,
                  program.output[g].offset + program.output[g].bytes);
}

}  // namespace rondo::execution
