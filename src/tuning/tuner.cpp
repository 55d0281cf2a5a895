#include "rondo/tuning/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "estimator.hpp"
#include "rondo/core/error.hpp"
#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo::tuning {
namespace {

/// What a rank tells the others of a measurement.
struct ToldTime {
  double time_us = 0;
  std::string failure = {};
};
auto members_of(SameAs<ToldTime> auto& told) {
  return std::tie(told.time_us, told.failure);
}

/// Of the runs, what is kept for a last comparison of the best so many points: where times scatter, the
/// least of many means is one that was lucky.
constexpr double kShareOfFinal = 0.2;
constexpr std::size_t kFinalists = 8;
constexpr const char* kOutOfRuns = "runs";
constexpr double kLeastGain = 0.01;  ///< TuCCL, equation 5
constexpr double kLeastDivergence = 0.1;
/// Failures after which a tuning without any time ends.
constexpr std::size_t kHopeless = 16;

/// What the end of a bracket or batch is compared with.
struct Moment {
  std::size_t points = 0;  ///< tried until then
  double best_us = 0;
  std::vector<std::vector<double>> good_values;
};

class Tuner {
 public:
  Tuner(const Space& space, const Objective& objective, const TuneOptions& options, TuneContext context)
      : space_(space),
        objective_(objective),
        options_(options),
        context_(std::move(context)),
        random_(options.seed),
        most_runs_(options.most_runs > 0
                       ? options.most_runs
                       : std::max(options.runs, static_cast<int>(space.num_of_grid() / 10))) {
    for (Record& record : context_.known)
      known_[{record.point, record.first_run, record.runs}] = record.measured;
    records_ = std::move(context_.known);
  }

  Tuning find() {
    while (tuning_.why_ended.empty()) {
      if (options_.hyperband && options_.runs >= options_.eta) {
        for (int s = num_halvings(); s >= 0 && tuning_.why_ended.empty(); --s) run_bracket(s);
      } else {
        run_batch();
      }
    }
    const bool is_out_of_runs = tuning_.why_ended == kOutOfRuns;
    compare_finalists();
    if (is_out_of_runs)
      tuning_.why_ended = fmt::format("{} runs are done, of at most {}", tuning_.runs, most_runs_);
    tuning_.best = best();
    if (!tuning_.best) refuse();
    return std::move(tuning_);
  }

 private:
  using Key = std::tuple<std::size_t, int, int>;

  /// s_max = floor(log_eta runs).
  int num_halvings() const {
    int s = 0;
    for (int runs = options_.eta; runs <= options_.runs; runs *= options_.eta) ++s;
    return s;
  }

  std::vector<std::size_t> choose(std::size_t count) {
    return Estimator(space_).choose(tuning_.trials, count, options_.estimator, random_);
  }

  void run_batch() {
    measure(choose(static_cast<std::size_t>(options_.batch)), options_.runs);
    end_of_part();
  }

  /// Bracket s: ceil((s_max + 1) / (s + 1) eta^s) points with runs / eta^s each; then the best of them, one
  /// in eta, with eta times the runs, until all are done.
  void run_bracket(int s) {
    int power = 1;
    for (int i = 0; i < s; ++i) power *= options_.eta;
    const int points = ((num_halvings() + 1) * power + s) / (s + 1);
    std::vector<std::size_t> alive = choose(static_cast<std::size_t>(points));
    for (; power >= 1 && !alive.empty() && tuning_.why_ended.empty(); power /= options_.eta) {
      measure(alive, std::max(1, options_.runs / power));
      alive = best_of(alive, alive.size() / static_cast<std::size_t>(options_.eta));
    }
    end_of_part();
  }

  /// At least one, where any has a time.
  std::vector<std::size_t> best_of(std::vector<std::size_t> points, std::size_t count) const {
    std::erase_if(points, [&](std::size_t point) {
      const Trial* trial = find_trial(point);
      return trial == nullptr || trial->has_failed();
    });
    std::ranges::sort(points, {},
                      [&](std::size_t point) { return std::pair(find_trial(point)->time_us, point); });
    points.resize(std::min(points.size(), std::max<std::size_t>(count, 1)));
    return points;
  }

  /// The better half of the finalists stays each time, with twice as many runs, as far as there are runs
  /// left.
  void compare_finalists() {
    if (runs_of_final() == 0) return;
    const auto first = best();
    if (!first) return;
    std::vector<std::size_t> alive;
    for (const Trial& trial : tuning_.trials) {
      if (trial.runs == first->runs) alive.push_back(trial.point);
    }
    alive = best_of(std::move(alive), kFinalists);
    const auto left = [&] { return most_runs_ - tuning_.runs; };
    const int share = std::min(left(), runs_of_final()) / 3;
    while (alive.size() > 1 && share >= static_cast<int>(alive.size())) {
      const int more = share / static_cast<int>(alive.size());
      measure(alive, find_trial(alive.front())->runs + more, most_runs_);
      const std::size_t half = (alive.size() + 1) / 2;
      alive = best_of(std::move(alive), half);
    }
  }
  /// None where one run says all, and for the parts of the search alone.
  int runs_of_final() const {
    const bool is_whole = options_.estimator && options_.hyperband;
    return is_whole && options_.runs > 1 ? static_cast<int>(kShareOfFinal * most_runs_) : 0;
  }

  const Trial* find_trial(std::size_t point) const {
    const auto found = index_.find(point);
    return found == index_.end() ? nullptr : &tuning_.trials[found->second];
  }

  /// Gives each point that many runs in all, as far as there are runs left of so many.
  void measure(const std::vector<std::size_t>& points, int runs) {
    measure(points, runs, most_runs_ - runs_of_final());
  }
  void measure(const std::vector<std::size_t>& points, int runs, int most_runs) {
    std::vector<Record> batch;
    for (const std::size_t point : points) {
      const Trial* trial = find_trial(point);
      const int before = trial == nullptr ? 0 : trial->runs;
      if (runs <= before) continue;
      if (tuning_.runs + runs - before > most_runs) {
        if (tuning_.why_ended.empty()) tuning_.why_ended = kOutOfRuns;
        break;
      }
      tuning_.runs += runs - before;
      batch.push_back({point, before, runs - before});
    }
    run_on_ranks(batch);
    for (const Record& record : batch) {
      const auto [at, is_new] = index_.try_emplace(record.point, tuning_.trials.size());
      if (is_new) tuning_.trials.push_back({record.point});
      Trial& trial = tuning_.trials[at->second];
      trial.time_us =
          (trial.time_us * trial.runs + record.measured.time_us * record.runs) / (trial.runs + record.runs);
      trial.runs += record.runs;
      if (!record.measured.failure.empty()) trial.failure = record.measured.failure;
    }
  }

  /// Collective. Fills in what is not known yet, and saves it.
  void run_on_ranks(std::vector<Record>& batch) {
    std::vector<std::size_t> unknown;
    std::vector<double> work;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto found = known_.find({batch[i].point, batch[i].first_run, batch[i].runs});
      if (found != known_.end()) {
        batch[i].measured = found->second;
      } else {
        unknown.push_back(i);
        work.push_back(batch[i].runs);
      }
    }
    if (unknown.empty()) return;
    const auto outcomes = map_parts(context_.communicator, work, [&](std::size_t part) {
      const Record& record = batch[unknown[part]];
      const Measured measured = objective_.measure(record.point, record.first_run, record.runs);
      return to_message(ToldTime{measured.time_us, measured.failure});
    });
    const Error* error = nullptr;
    for (std::size_t part = 0; part < unknown.size(); ++part) {
      Record& record = batch[unknown[part]];
      if (outcomes[part].error) {
        error = &*outcomes[part].error;
        continue;
      }
      const auto told = from_message<ToldTime>(outcomes[part].value);
      record.measured = {told.time_us, told.failure};
      records_.push_back(record);
    }
    // What some ranks have finished before a stop is kept.
    on_root(context_.communicator, [&] {
      context_.save(records_);
      return Bytes{};
    });
    if (error != nullptr) throw *error;
  }

  std::optional<Trial> best() const {
    // Few runs flatter: the most count, then the time.
    std::optional<Trial> best;
    for (const Trial& trial : tuning_.trials) {
      if (trial.has_failed()) continue;
      if (!best || trial.runs > best->runs || (trial.runs == best->runs && trial.time_us < best->time_us))
        best = trial;
    }
    return best;
  }

  void end_of_part() {
    const auto now = best();
    if (!now) {
      if (tuning_.trials.size() >= std::min(kHopeless, space_.size())) refuse();
    } else {
      moments_.push_back(
          {tuning_.trials.size(), now->time_us, Estimator(space_).good_values(tuning_.trials)});
      if (context_.communicator.is_root()) {
        context_.progress(fmt::format("{} runs of {} points; best {:.6g} us: {}", tuning_.runs,
                                      tuning_.trials.size(), now->time_us, space_.text(now->point)));
      }
    }
    if (!tuning_.why_ended.empty()) return;
    if (tuning_.trials.size() == space_.size()) {
      tuning_.why_ended = "every point is measured";
    } else if (has_settled()) {
      tuning_.why_ended =
          fmt::format("over {} points it got less than {:.0f} % faster and good points stayed alike",
                      options_.patience, 100 * kLeastGain);
    }
  }

  bool has_settled() const {
    if (moments_.empty()) return false;
    const Moment& now = moments_.back();
    const auto is_back = [&](const Moment& moment) {
      return moment.points + static_cast<std::size_t>(options_.patience) <= now.points;
    };
    const auto found = std::ranges::find_if(moments_.rbegin(), moments_.rend(), is_back);
    if (found == moments_.rend()) return false;
    const Moment& then = *found;
    return then.best_us / now.best_us - 1 < kLeastGain &&
           divergence(now.good_values, then.good_values) < kLeastDivergence;
  }

  [[noreturn]] void refuse() const {
    const Trial& first = tuning_.trials.front();
    throw Error(ExitCode::unavailable,
                fmt::format("none of {} points gives a time; the first, {}: {}", tuning_.trials.size(),
                            space_.text(first.point), first.failure));
  }

  const Space& space_;
  const Objective& objective_;
  const TuneOptions& options_;
  TuneContext context_;
  Random random_;
  int most_runs_;
  std::map<Key, Measured> known_;
  std::vector<Record> records_;
  std::map<std::size_t, std::size_t> index_;  ///< of trials, by point
  std::vector<Moment> moments_;
  Tuning tuning_;
};

}  // namespace

void TuneOptions::check() const {
  const auto require = [](bool is_right, const char* what, int value, const char* range) {
    if (!is_right) throw Error(ExitCode::usage, fmt::format("{} is {}; it has to be {}", what, value, range));
  };
  require(most_runs >= 0, "most_runs", most_runs, "0 or more");
  require(runs >= 1 && runs <= 1'000'000, "runs", runs, "1 to 1000000");
  require(eta >= 2 && eta <= 100, "eta", eta, "2 to 100");
  require(batch >= 1 && batch <= 100'000, "batch", batch, "1 to 100000");
  require(patience >= 1, "patience", patience, "1 or more");
}

std::string TuneOptions::text() const {
  return fmt::format("seed={} estimator={} hyperband={} most-runs={} runs={} eta={} batch={} patience={}",
                     seed, estimator, hyperband, most_runs, runs, eta, batch, patience);
}

Tuning tune(const Space& space, const Objective& objective, const TuneOptions& options, TuneContext context) {
  options.check();
  return Tuner(space, objective, options, std::move(context)).find();
}

}  // namespace rondo::tuning
