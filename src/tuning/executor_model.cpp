#include <algorithm>
#include <array>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/random.hpp"
#include "rondo/core/units.hpp"
#include "rondo/tuning/objective.hpp"

namespace rondo::tuning {
namespace {

struct Protocol {
  const char* name;
  double latency_us;  ///< of a step (NCCL 2.18, tuning.cc: hwLat of rings over NVLink)
  double share;       ///< of what a link carries that is data: 8-byte flags beside 8 bytes, 8 beside 120
};
constexpr std::array<Protocol, 3> kProtocols{{{"LL", 0.6, 0.5}, {"LL128", 1.9, 0.9375}, {"Simple", 3.4, 1}}};

constexpr double kChannelUs = 0.15;        ///< a channel more to start and to wait for
constexpr double kThreadGBps = 0.04;       ///< what a thread copies
constexpr double kThreadUs = 0.002;        ///< a thread more at a barrier, a step
constexpr double kChannelShare = 1.0 / 3;  ///< of the link that one channel can use

const Protocol& protocol_of(const std::string& name) {
  const auto found =
      std::ranges::find(kProtocols, name, [](const Protocol& p) { return std::string(p.name); });
  if (found == kProtocols.end())
    throw Error(ExitCode::bad_data, "protocol '" + name + "' is not known to the model: LL, LL128, Simple");
  return *found;
}

class ModelledObjective : public Objective {
 public:
  ModelledObjective(const ExecutorModel& model, const Space& space) : model_(model), space_(space) {
    const std::size_t protocol = space.parameter("protocol");
    for (const std::string& name : space.parameters()[protocol].values) protocol_of(name);
    for (const char* name : {"channels", "threads", "buffer_bytes"}) {
      if (!space.parameters()[space.parameter(name)].is_ordered)
        throw Error(ExitCode::bad_data, std::string("parameter '") + name + "' has to have numbers");
    }
  }

  Measured measure(std::size_t point, int first_run, int runs) const override {
    const double time_us = model_.time_us(space_, point);
    double sum = 0;
    for (int run = first_run; run < first_run + runs; ++run) {
      const double share =
          1 + model_.noise * normal_variate(model_.seed, point, static_cast<std::uint64_t>(run));
      sum += time_us * std::max(0.1, share);
    }
    return {sum / runs};
  }

  std::string text() const override {
    return "executor model: size " + format_number(model_.size_bytes) + ", bandwidth " +
           format_number(model_.bandwidth_GBps) + ", depth " + std::to_string(model_.depth) + ", noise " +
           format_number(model_.noise) + ", seed " + std::to_string(model_.seed);
  }

 private:
  ExecutorModel model_;
  const Space& space_;
};

}  // namespace

double ExecutorModel::time_us(const Space& space, std::size_t point) const {
  const Protocol& protocol = protocol_of(space.value(point, space.parameter("protocol")));
  const double channels = space.number(point, space.parameter("channels"));
  const double threads = space.number(point, space.parameter("threads"));
  const double buffer_bytes = space.number(point, space.parameter("buffer_bytes"));
  // A block of threads serves a channel; warps beyond what the schedulers hold stall one another.
  const double of_threads = threads * kThreadGBps * (threads < 32 * channels ? threads / (32 * channels) : 1);
  const double of_channel = std::min(of_threads, kChannelShare * bandwidth_GBps);
  // Smoothly the least of both: links are never quite full.
  const double together = channels * of_channel;
  const double rate_GBps = protocol.share / (1 / together + 1 / bandwidth_GBps) * 1.25;
  const double of_channel_bytes = size_bytes / channels;
  const double chunk_bytes = std::min(of_channel_bytes, protocol.share * buffer_bytes);
  const double chunks = std::ceil(of_channel_bytes / chunk_bytes);
  const double step_us =
      protocol.latency_us + kThreadUs * threads / 32 + transmission_us(chunk_bytes * channels, rate_GBps);
  return kChannelUs * channels + (chunks + depth - 1) * step_us;
}

double normal_variate(std::uint64_t seed, std::uint64_t point, std::uint64_t run) {
  // Twelve uniform ones: no logarithm, which differs between machines.
  Random random(mix_bits(seed + 1) ^ mix_bits(point * 0x9e3779b97f4a7c15ULL + run + 1));
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.unit();
  return sum;
}

std::unique_ptr<Objective> make_objective(const ExecutorModel& model, const Space& space) {
  return std::make_unique<ModelledObjective>(model, space);
}

}  // namespace rondo::tuning
