// Strong scaling of engine rounds, decomposed as NCFlow does: the same AllGather of 1 GB on 1 rank and on
// more, in turn, and a projection of the run on 1 rank to more ranks than the machine has cores.

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "case_runner.hpp"
#include "round_work.hpp"

namespace {

using rondo::benchmarks::CaseResult;
using rondo::benchmarks::RoundWork;
using rondo::benchmarks::Stage;
using Json = nlohmann::ordered_json;

constexpr const char* kProjectionLabel =
    "projection, not measured: every stage of a round waits for the one before, its parts are dealt longest "
    "first by their seconds on 1 rank; all else takes as long as on 1 rank";

/// The times of a run, in seconds.
struct Run {
  double solve_s = 0;     ///< sum over the rounds of the most part seconds on a rank
  double staged_s = 0;    ///< the same with a barrier between the stages of a round
  double parts_s = 0;     ///< of all parts
  double rounds_s = 0;    ///< of all rounds, without their files
  double exchange_s = 0;  ///< of the rounds: what ranks say to each other, waiting for the slowest aside
  double wall_s = 0;      ///< of the whole command
  double other_s = 0;     ///< search, round files and replay
  RoundWork work;
};

Run measured(const CaseResult& r) {
  Run run;
  run.work = rondo::benchmarks::round_work(r.report);
  run.solve_s = run.work.busiest_seconds();
  run.staged_s = run.work.staged_seconds();
  run.parts_s = run.work.part_seconds();
  const Json& wall = r.report["wall_parts_s"];
  run.rounds_s = wall["rounds"];
  run.exchange_s = r.report["metrics"]["exchange_s"];
  run.wall_s = r.wall_s;
  run.other_s =
      wall["search"].get<double>() + wall["round_files"].get<double>() + wall["replay"].get<double>();
  return run;
}

struct Quantity {
  const char* name;
  const char* label;
  double Run::*value;
};
constexpr Quantity kQuantities[] = {{"solve_s", "solve", &Run::solve_s},
                                    {"solve_by_stages_s", "solve, stage by stage", &Run::staged_s},
                                    {"part_seconds_s", "all parts", &Run::parts_s},
                                    {"rounds_s", "rounds", &Run::rounds_s},
                                    {"exchange_s", "exchange in the rounds", &Run::exchange_s},
                                    {"wall_s", "whole command", &Run::wall_s}};

double median(const std::vector<Run>& runs, double Run::*value) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(run.*value);
  return rondo::benchmarks::median(std::move(values));
}

Json print_medians(const std::vector<Run>& on_one, const std::vector<Run>& on_more, int ranks) {
  std::printf("\n%-24s %12s %6d ranks %10s   (medians of %zu runs)\n", "seconds", "1 rank", ranks, "ratio",
              on_one.size());
  Json medians;
  for (const Quantity& quantity : kQuantities) {
    const double one = median(on_one, quantity.value);
    const double more = median(on_more, quantity.value);
    std::printf("%-24s %12.3f %12.3f %10.3f\n", quantity.label, one, more, one / more);
    medians[quantity.name] = {
        {"1 rank", one}, {std::to_string(ranks) + " ranks", more}, {"ratio", one / more}};
  }
  return medians;
}

/// Seconds of the solved parts, by round and stage.
Json part_seconds(const RoundWork& work) {
  Json rounds = Json::array();
  for (const auto& stages : work.rounds) {
    Json round = Json::array();
    for (const Stage& stage : stages) {
      Json seconds = Json::array();
      for (const auto& part : stage) seconds.push_back(part.seconds);
      round.push_back(std::move(seconds));
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

/// From the run whose rounds took the median time.
Json print_projection(std::vector<Run> on_one) {
  const auto middle = on_one.begin() + static_cast<std::ptrdiff_t>((on_one.size() - 1) / 2);
  std::nth_element(on_one.begin(), middle, on_one.end(),
                   [](const Run& a, const Run& b) { return a.rounds_s < b.rounds_s; });
  const double between_s = middle->rounds_s - middle->parts_s;
  const double serial_s = between_s + middle->other_s;
  std::printf("\n%s\n", kProjectionLabel);
  std::printf("1 rank: parts %.3f s; all else %.3f s, of it %.3f s in the rounds\n", middle->parts_s,
              serial_s, between_s);
  std::printf("%10s %12s %10s %12s %10s\n", "ranks", "solve s", "ratio", "all s", "ratio");
  Json rows = Json::array();
  for (int ranks = 2; ranks <= 256; ranks *= 2) {
    const double solve_s = middle->work.dealt_seconds(ranks);
    const double solve_ratio = middle->parts_s / solve_s;
    const double all_s = solve_s + serial_s;
    const double all_ratio = (middle->parts_s + serial_s) / all_s;
    std::printf("%10d %12.3f %10.3f %12.3f %10.3f  projection\n", ranks, solve_s, solve_ratio, all_s,
                all_ratio);
    rows.push_back({{"ranks", ranks},
                    {"solve_s", solve_s},
                    {"solve_ratio", solve_ratio},
                    {"all_s", all_s},
                    {"all_ratio", all_ratio}});
  }
  return {{"label", kProjectionLabel},
          {"parts_s", middle->parts_s},
          {"serial_in_rounds_s", between_s},
          {"plan_files_replay_s", middle->other_s},
          {"rows", rows},
          {"part_seconds", part_seconds(middle->work)}};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rondo::benchmarks;
  const BenchmarkOptions options =
      parse_options(argc, argv, "scaling",
                    {{"--fabric", "star:chassis=16,intra=ndv2"}, {"--repeat", "5"}, {"--timeout", "3600"}});
  const int repeat = options.number("--repeat", 1);
  const int timeout_s = options.number("--timeout", 1);
  const std::string& fabric = options.own.at("--fabric");
  if (options.ranks < 2) {
    std::fprintf(stderr, "scaling: --ranks has to be at least 2; 1 rank is what they are compared with\n");
    return 64;
  }

  std::printf("%s, AllGather of 1 GB, engine rounds, decomposed by ncflow\n\n", fabric.c_str());
  std::printf("%5s %12s %12s %12s %12s %12s %12s\n", "ranks", "solve s", "by stages s", "all parts s",
              "rounds s", "exchange s", "command s");
  Json rows = Json::array();
  std::vector<Run> on_one;
  std::vector<Run> on_more;
  std::set<std::string> digests;
  bool all_valid = true;
  // In turn, so that what else the machine does slows both alike.
  for (int i = 0; i < repeat; ++i) {
    for (const int ranks : {1, options.ranks}) {
      const CaseResult r = solve_case(options.rondo, ranks,
                                      {"--topology", fabric, "--collective", "allgather", "--size", "1GB",
                                       "--engine", "rounds", "--start", "list", "--decompose", "ncflow"},
                                      timeout_s);
      Json row{{"ranks", ranks}};
      if (const std::string failure = r.failure(); !failure.empty()) {
        std::printf("%5d failed: %s after %.1f s\n", ranks, failure.c_str(), r.wall_s);
        row["failed"] = failure;
        all_valid = false;
      } else {
        Run run = measured(r);
        std::printf("%5d", ranks);
        for (const Quantity& quantity : kQuantities) {
          std::printf(" %12.3f", run.*quantity.value);
          row[quantity.name] = run.*quantity.value;
        }
        std::printf("\n");
        row["finish_us"] = r.report["finish_us"];
        row["wall_parts_s"] = r.report["wall_parts_s"];
        digests.insert(r.report["schedule_digest"].get<std::string>());
        (ranks == 1 ? on_one : on_more).push_back(std::move(run));
      }
      std::fflush(stdout);
      rows.push_back(std::move(row));
      save_results(options, rows, {{"fabric", fabric}});
    }
  }

  Json more{{"fabric", fabric}, {"same_schedule", digests.size() == 1}};
  if (digests.size() > 1) {
    std::printf("\nthe runs made different schedules\n");
    all_valid = false;
  }
  if (!on_one.empty() && !on_more.empty()) {
    more["medians"] = print_medians(on_one, on_more, options.ranks);
    more["projection"] = print_projection(on_one);
  }
  write_results(options, rows, more);
  return all_valid ? 0 : 1;
}
