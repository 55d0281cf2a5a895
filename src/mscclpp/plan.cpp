#include "rondo/mscclpp/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rondo::mscclpp {
namespace {

constexpr std::array<std::string_view, 30> kOpNames = {
    "nop",       "barrier",   "put",     "pws",      "pwsf",        "get",        "copy",  "signal",
    "wait",      "flush",     "re",      "res",      "rre",         "rres",       "ppkt",  "rppkt",
    "respkt",    "cpkt",      "upkt",    "repkt",    "recpkt",      "recspkt",    "glres", "gstore",
    "gstorepkt", "rlxsignal", "rlxwait", "pipeline", "sem_acquire", "sem_release"};
constexpr std::array<std::string_view, 3> kChannelNames = {"memory", "port", "switch"};

template <class Value, std::size_t n>
std::optional<Value> find(const std::array<std::string_view, n>& names, std::string_view name) {
  const auto it = std::ranges::find(names, name);
  if (it == names.end()) return std::nullopt;
  return static_cast<Value>(it - names.begin());
}

/// Keeps the first figure beyond a cap.
class PlanCaps {
 public:
  std::optional<std::string> run(const Plan& plan) {
    for (int g = 0; g < plan.num_gpus(); ++g) {
      const Gpu& gpu = plan.gpus[static_cast<std::size_t>(g)];
      for (int t = 0; t < static_cast<int>(gpu.tbs.size()); ++t)
        check(gpu.tbs[static_cast<std::size_t>(t)], g, t);
    }
    return excess_;
  }

 private:
  void limit(const char* what, const std::string& where, std::size_t figure, int allowed) {
    if (figure <= static_cast<std::size_t>(allowed) || excess_) return;
    excess_ =
        fmt::format("{}: {} {}; the executor of MSCCL++ takes at most {}", where, figure, what, allowed);
  }

  void check(const ThreadBlock& tb, int g, int t) {
    std::size_t ops = tb.ops.size();
    for (const Op& op : tb.ops) ops += op.ops.size();
    limit("operations of a threadblock", place(g, t), ops, kCaps.ops);
    for (const ChannelType type : kChannelTypes)
      limit(type == ChannelType::memory ? "memory channels of a threadblock"
            : type == ChannelType::port ? "port channels of a threadblock"
                                        : "switch channels of a threadblock",
            place(g, t), tb.channels_of(type).size(), kCaps.channels);
    for (const auto& buffers : tb.buffers)
      limit("remote buffers of a threadblock", place(g, t), buffers.size(), kCaps.buffers);
    for (int o = 0; o < static_cast<int>(tb.ops.size()); ++o) {
      const Op& op = tb.ops[static_cast<std::size_t>(o)];
      check(op, place(g, t, o));
      for (const Op& inner : op.ops) check(inner, place(g, t, o));
    }
  }

  void check(const Op& op, const std::string& where) {
    limit("channels of an operation", where, op.channels.size(), kCaps.op_channels);
    limit("sources of an operation", where, op.src.size(), kCaps.op_operands);
    limit("destinations of an operation", where, op.dst.size(), kCaps.op_operands);
    limit("semaphores of an operation", where, op.semaphores.size(), kCaps.op_semaphores);
    if (op.barrier >= 0)
      limit("barriers of a GPU", where, static_cast<std::size_t>(op.barrier) + 1, kCaps.barriers);
  }

  std::optional<std::string> excess_;
};

}  // namespace

std::string_view to_string(OpType type) {
  return kOpNames[static_cast<std::size_t>(type)];
}

std::string_view to_string(ChannelType type) {
  return kChannelNames[static_cast<std::size_t>(type)];
}

std::optional<OpType> find_op_type(std::string_view name) {
  return find<OpType>(kOpNames, name);
}

std::optional<ChannelType> find_channel_type(std::string_view name) {
  return find<ChannelType>(kChannelNames, name);
}

std::string op_type_names() {
  std::string names;
  for (const std::string_view name : kOpNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

Collective collective_of(const Plan& plan) {
  return find_collective(plan.collective).value_or(Collective::custom);
}

std::string place(int gpu, int tb, int op) {
  std::string text = fmt::format("gpu {}", gpu);
  if (tb >= 0) text += fmt::format(" tb {}", tb);
  if (op >= 0) text += fmt::format(" op {}", op);
  return text;
}

std::optional<std::string> beyond_caps(const Plan& plan) {
  return PlanCaps().run(plan);
}

}  // namespace rondo::mscclpp
