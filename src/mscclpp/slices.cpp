#include <algorithm>
#include <numeric>

#include "rondo/mscclpp/unfolded.hpp"

namespace rondo::mscclpp {
namespace {

template <class Visit>
void for_each_op(const Plan& plan, const Visit& visit) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& tb : gpu.tbs) {
      for (const Op& op : tb.ops) {
        visit(op);
        for (const Op& inner : op.ops) visit(inner);
      }
    }
  }
}

}  // namespace

std::size_t num_slices(const Plan& plan) {
  constexpr int kMostSlices = 1024;
  std::size_t slices = 1;
  for_each_op(plan, [&](const Op& op) {
    if (op.num_slices < 1 || op.num_slices > kMostSlices || slices > std::size_t{1} << 20) return;
    slices = std::lcm(slices, static_cast<std::size_t>(op.num_slices));
  });
  return slices;
}

std::size_t telling_chunk_bytes(const Plan& plan) {
  std::int64_t unit = 0;
  for_each_op(plan, [&](const Op& op) { unit = std::max(unit, op.unit_size); });
  return num_slices(plan) * (unit > 0 ? 2 * static_cast<std::size_t>(unit) : 1);
}

}  // namespace rondo::mscclpp
