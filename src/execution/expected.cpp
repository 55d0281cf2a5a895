#include "expected.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rondo::execution {
namespace {

/// Sums of the inputs of all GPUs, each made once: many GPUs may want the same.
class Sums {
 public:
  Sums(int num_gpus, int repetition) : num_gpus_(num_gpus), repetition_(repetition) {}

  const Bytes& of(std::size_t begin, std::size_t count) {
    const auto [it, is_new] = sums_.try_emplace({begin, count}, count);
    Bytes& sum = it->second;
    Bytes summand(is_new ? count : 0);
    for (int g = 0; g < num_gpus_ && is_new; ++g) {
      fill_input(g, begin, summand, repetition_);
      for (std::size_t i = 0; i < count; ++i) {
        sum[i] =
            static_cast<std::byte>(std::to_integer<unsigned>(sum[i]) + std::to_integer<unsigned>(summand[i]));
      }
    }
    return sum;
  }

 private:
  int num_gpus_;
  int repetition_;
  std::map<std::pair<std::size_t, std::size_t>, Bytes> sums_;  ///< by (begin, count)
};

}  // namespace

void fill_input(int gpu, std::size_t begin, std::span<std::byte> bytes, int repetition) {
  const std::uint64_t stream =
      (static_cast<std::uint64_t>(gpu) << 40) + (static_cast<std::uint64_t>(repetition) << 32);
  for (std::size_t i = 0; i < bytes.size();) {
    // The finaliser of splitmix64: eight bytes at a time.
    std::uint64_t x = stream + (begin + i) / 8 + 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
    for (std::size_t b = (begin + i) % 8; b < 8 && i < bytes.size(); ++b, ++i) {
      bytes[i] = static_cast<std::byte>(x >> (8 * b));
    }
  }
}

std::vector<Bytes> expected_outputs(const Program& program, const Deal& deal, int repetition,
                                    std::byte filler) {
  std::vector<Bytes> outputs(program.memory.size());
  for (int g = deal.first_of(deal.rank); g < deal.first_of(deal.rank + 1); ++g) {
    const auto index = static_cast<std::size_t>(g);
    if (!program.coll->has_output(index, static_cast<std::size_t>(program.root))) continue;
    outputs[index].assign(program.output[index].bytes, filler);
  }
  Sums sums(program.num_gpus(), repetition);
  for (const Delivery& d : program.deliveries) {
    if (!deal.mine(d.to)) continue;
    const auto output = std::span(outputs[static_cast<std::size_t>(d.to)]).subspan(d.output, d.bytes);
    if (d.from == Delivery::kSumOfAll) {
      const Bytes& sum = sums.of(d.input, d.bytes);
      std::copy(sum.begin(), sum.end(), output.begin());
    } else {
      fill_input(d.from, d.input, output, repetition);
    }
  }
  return outputs;
}

}  // namespace rondo::execution
