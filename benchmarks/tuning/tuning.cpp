// benchmarks/run.sh tuning: rondo tune's search on models whose optimum is known, in TuCCL's space of 3600
// points (2430 of them allowed), with noise, in at most 360 runs, beside its parts alone, random search,
// one parameter at a time, and the whole grid.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "benchmarks.hpp"
#include "rondo/core/random.hpp"
#include "rondo/tuning/tuner.hpp"

namespace rondo::benchmarks::tuning {
namespace {

using rondo::tuning::Objective;
using namespace rondo::tuning;

constexpr std::uint64_t kSeeds = 11;
constexpr int kMostRuns = 360;
constexpr int kRuns = 4;
constexpr double kNear = 0.02;

/// Times of all points, and runs of them with noise.
class Known : public Objective {
 public:
  Known(std::vector<double> times_us, double noise, std::uint64_t seed)
      : times_us_(std::move(times_us)), noise_(noise), seed_(seed) {}

  Measured measure(std::size_t point, int first_run, int runs) const override {
    double sum = 0;
    for (int run = first_run; run < first_run + runs; ++run)
      sum += std::max(0.1, 1 + noise_ * normal_variate(seed_, point, static_cast<std::uint64_t>(run)));
    return {times_us_[point] * sum / runs};
  }
  std::string text() const override { return "known"; }
  double loss(std::size_t point) const { return times_us_[point] / *std::ranges::min_element(times_us_) - 1; }

 private:
  std::vector<double> times_us_;
  double noise_;
  std::uint64_t seed_;
};

/// The executor's model: 1 KiB to 1 GiB at 25, 100 or 300 GB/s, 4 or 15 GPUs deep.
std::vector<double> executor_times(const Space& space, std::uint64_t seed) {
  constexpr double kBandwidths[] = {25, 100, 300};
  const ExecutorModel model{.size_bytes = std::pow(4.0, 5 + static_cast<double>(seed % 11)),
                            .bandwidth_GBps = kBandwidths[seed % 3],
                            .depth = seed % 2 == 1 ? 4 : 15};
  std::vector<double> times;
  for (std::size_t i = 0; i < space.size(); ++i) times.push_back(model.time_us(space, i));
  return times;
}

/// A bowl around a random point; coupled: along valleys that no parameter follows alone.
std::vector<double> bowl_times(const Space& space, std::uint64_t seed, bool is_coupled) {
  Random random(seed * 77 + 5);
  const Choice best = space.choice(random.below(space.size()));
  std::vector<double> of_words(space.parameters()[0].values.size());
  for (double& cost : of_words) cost = 0.3 + 0.5 * random.unit();
  std::vector<double> times;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const Choice choice = space.choice(i);
    double time = choice[0] == best[0] ? 1 : 1 + of_words[choice[0]];
    std::vector<double> off;
    for (std::size_t p = 1; p < choice.size(); ++p) {
      const auto steps = static_cast<double>(space.parameters()[p].values.size() - 1);
      off.push_back((static_cast<double>(choice[p]) - static_cast<double>(best[p])) / steps);
    }
    for (std::size_t p = 0; p < off.size(); ++p) {
      const double along = is_coupled ? off[p] + 0.9 * off[(p + 1) % off.size()] : off[p];
      time += (is_coupled ? 3 : 2) * along * along;
    }
    times.push_back(100 * time);
  }
  return times;
}

struct Found {
  std::size_t point = 0;
  int runs = 0;
};

/// From MSCCL's default (Simple, few channels, many threads, large buffers) every value of one parameter
/// after the other, with all runs each, until nothing changes.
Found one_at_a_time(const Space& space, const Objective& objective, int runs) {
  Choice at;
  for (const Parameter& parameter : space.parameters())
    at.push_back(static_cast<std::uint16_t>(parameter.values.size() - 1));
  at[1] = 0;
  Found found{space.nearest(at)};
  double best_us = objective.measure(found.point, 0, runs).time_us;
  found.runs = runs;
  std::vector<bool> is_measured(space.size());
  for (bool any = true; any;) {
    any = false;
    for (std::size_t p = 0; p < at.size(); ++p) {
      const Choice from = space.choice(found.point);
      for (std::uint16_t v = 0; v < space.parameters()[p].values.size(); ++v) {
        Choice to = from;
        to[p] = v;
        const std::size_t point = space.nearest(to);
        if (space.choice(point) != to || is_measured[point]) continue;
        if (found.runs + runs > kMostRuns) return found;
        is_measured[point] = true;
        found.runs += runs;
        const double time_us = objective.measure(point, 0, runs).time_us;
        if (time_us >= best_us) continue;
        best_us = time_us;
        found.point = point;
        any = true;
      }
    }
  }
  return found;
}

/// All runs of every allowed point.
Found whole_grid(const Space& space, const Objective& objective, int runs) {
  Found found;
  double best_us = std::numeric_limits<double>::infinity();
  for (std::size_t point = 0; point < space.size(); ++point) {
    const double time_us = objective.measure(point, 0, runs).time_us;
    found.runs += runs;
    if (time_us >= best_us) continue;
    best_us = time_us;
    found.point = point;
  }
  return found;
}

Found search(const std::string& method, const Space& space, const Objective& objective, int runs,
             std::uint64_t seed) {
  if (method == "grid") return whole_grid(space, objective, runs);
  if (method == "one at a time") return one_at_a_time(space, objective, runs);
  const TuneOptions options{.seed = seed,
                            .estimator = method == "both" || method == "both, stopped" || method == "TPE",
                            .hyperband = method != "TPE" && method != "random",
                            .most_runs = kMostRuns,
                            .runs = runs,
                            .patience = method == "both, stopped" ? TuneOptions{}.patience : kMostRuns};
  const auto alone = make_local_communicator();
  const Tuning found = tune(space, objective, options, {*alone});
  return {found.best->point, found.runs};
}

nlohmann::ordered_json row_of(const std::string& model, double noise, const std::string& method,
                              const Space& space) {
  int near = 0;
  double sum = 0;
  double worst = 0;
  double runs = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Known known(
        model == "executor" ? executor_times(space, seed) : bowl_times(space, seed, model == "coupled bowl"),
        noise, seed);
    const Found found = search(method, space, known, noise > 0 ? kRuns : 1, seed);
    const double loss = known.loss(found.point);
    near += loss <= kNear ? 1 : 0;
    sum += loss;
    worst = std::max(worst, loss);
    runs += found.runs;
  }
  return {{"model", model},      {"noise", noise},        {"method", method},
          {"cases", kSeeds},     {"near", near},          {"mean_loss", sum / kSeeds},
          {"worst_loss", worst}, {"runs", runs / kSeeds}, {"grid", space.num_of_grid()}};
}

}  // namespace

int benchmark(int argc, char** argv) {
  if (argc != 3 || std::string(argv[1]) != "--json") {
    std::cerr << "usage: tuning --json FILE\n";
    return 64;
  }
  const Space space = tuccl_space();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const char* model : {"executor", "bowl", "coupled bowl"}) {
    for (const double noise : {0.0, 0.02, 0.05}) {
      for (const char* method :
           {"both", "both, stopped", "TPE", "Hyperband", "random", "one at a time", "grid"}) {
        // Without noise a run says all: there are no brackets.
        if (noise == 0 && std::string(method) == "Hyperband") continue;
        rows.push_back(row_of(model, noise, method, space));
        std::cout << rows.back().dump() << std::endl;
      }
    }
  }
  std::ofstream(argv[2]) << nlohmann::ordered_json{{"rows", rows}}.dump(1) << '\n';
  return 0;
}

}  // namespace rondo::benchmarks::tuning
