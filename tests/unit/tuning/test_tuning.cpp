#include <gtest/gtest.h>

#include "rondo/core/error.hpp"
#include "rondo/tuning/tuner.hpp"

/// Tuning: spaces, objectives, and the search on models whose optimum is known.
namespace rondo::tuning::test_tuning {
namespace {

const char* const kSmallSpace = R"({"format": "rondo-tuning-space", "version": 1, "parameters": [
  {"name": "protocol", "values": ["LL", "Simple"]},
  {"name": "channels", "values": [1, 2, 4, 8, 16, 32]},
  {"name": "threads", "values": [64, 128, 256, 512, 1024]}],
  "at_least": [{"parameter": "threads", "times": 32, "of": "channels"}]})";

Space small_space() {
  return space_from_json(parse_json(kSmallSpace, "space"));
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A bowl around one point; failing or stopping where it is told to.
class Bowl : public Objective {
 public:
  Bowl(const Space& space, std::size_t optimum, double noise)
      : space_(space), best_(space.choice(optimum)), noise_(noise) {}

  double time_us(std::size_t point) const {
    const Choice choice = space_.choice(point);
    double time_us = 100;
    double before = 0;
    for (std::size_t p = 0; p < choice.size(); ++p) {
      const Parameter& parameter = space_.parameters()[p];
      const double off = (double{1} * choice[p] - best_[p]) / static_cast<double>(parameter.values.size());
      time_us += parameter.is_ordered ? 200 * (off + before / 2) * (off + before / 2) : (off != 0 ? 40 : 0);
      before = parameter.is_ordered ? off : 0;
    }
    return time_us;
  }
  Measured measure(std::size_t point, int first_run, int runs) const override {
    measured_ += runs;
    if (measured_ > stop_after) throw Error(ExitCode::stopped, "stopped");
    if (fails && fails(point)) return {0, "no number"};
    double sum = 0;
    for (int run = first_run; run < first_run + runs; ++run)
      sum += time_us(point) * (1 + noise_ * normal_variate(7, point, static_cast<std::uint64_t>(run)));
    return {sum / runs};
  }
  std::string text() const override { return "bowl"; }

  std::function<bool(std::size_t)> fails;
  int stop_after = 1 << 30;
  int measured() const { return measured_; }

 private:
  const Space& space_;
  Choice best_;
  double noise_;
  mutable int measured_ = 0;
};

Tuning tuned(const Space& space, const Objective& objective, const TuneOptions& options,
             std::vector<Record> known = {}, std::vector<Record>* saved = nullptr) {
  const auto alone = make_local_communicator();
  TuneContext context{*alone, std::move(known)};
  if (saved != nullptr) context.save = [saved](const std::vector<Record>& records) { *saved = records; };
  return tune(space, objective, options, std::move(context));
}

TEST(Space, OfTucclHas3600Points) {
  const Space space = tuccl_space();
  EXPECT_EQ(space.num_of_grid(), 3600U);
  // Threads at least 32 a channel leave 19 + 17 + 13 + 5 of 80.
  EXPECT_EQ(space.size(), 54U * 45U);
  EXPECT_EQ(space.text(0), "protocol=LL,channels=2,threads=64,buffer_bytes=256");
  EXPECT_EQ(space.point(space.text(1234)), 1234U);
}

TEST(Space, OfAFile) {
  const Space space = small_space();
  EXPECT_EQ(space.num_of_grid(), 60U);
  // Threads at least 32 a channel leave 5 + 5 + 4 + 3 + 2 + 1 of 30.
  EXPECT_EQ(space.size(), 2U * 20U);
  EXPECT_EQ(space_from_json(space.to_json()).to_json(), space.to_json());
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string text = kSmallSpace;
    text.replace(text.find(from), from.size(), to);
    return error_of([&] { space_from_json(parse_json(text, "space")); });
  };
  EXPECT_TRUE(has(refusal("\"LL\", \"Simple\"", "\"LL\", 4"), "partly numbers"));
  EXPECT_TRUE(has(refusal("\"LL\", \"Simple\"", "\"a b\""), "word of a command"));
  EXPECT_TRUE(has(refusal("\"LL\", \"Simple\"", "\"LL\", \"LL\""), "a value twice"));
  EXPECT_TRUE(has(refusal("[1, 2, 4,", "[2, 1, 4,"), "do not ascend"));
  EXPECT_TRUE(has(refusal("32, \"of\"", "4096, \"of\""), "no point"));
  EXPECT_TRUE(has(refusal("\"of\": \"channels\"", "\"of\": \"protocol\""), "no parameter with numbers"));
  EXPECT_TRUE(has(error_of([] { Space({{"a", {"x"}}, {"a", {"y"}}}, {}); }), "'a' is there twice"));
}

TEST(Tuner, FindsTheOptimumInATenthOfTheRuns) {
  const Space space = tuccl_space();
  int near = 0;
  constexpr int kTrials = 10;
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    const std::size_t optimum = (seed * 977 + 311) % space.size();
    const Bowl bowl(space, optimum, 0.02);
    const Tuning found = tuned(space, bowl, {.seed = seed, .patience = 360});
    EXPECT_EQ(bowl.measured(), found.runs);
    EXPECT_LE(found.runs, 360);
    near += bowl.time_us(found.best->point) <= 1.02 * bowl.time_us(optimum) ? 1 : 0;
  }
  EXPECT_GE(near, 9);
}

TEST(Tuner, StopsWhereNothingIsGained) {
  const Space space = tuccl_space();
  const Tuning found = tuned(space, Bowl(space, 700, 0), {.most_runs = 2000, .runs = 1, .patience = 40});
  EXPECT_TRUE(has(found.why_ended, "over 40 points")) << found.why_ended;
  EXPECT_EQ(found.best->point, 700U);
  EXPECT_LT(found.runs, 400);
}

TEST(Tuner, MeasuresAllOfASmallSpace) {
  const Space space = small_space();
  const Tuning found = tuned(space, Bowl(space, 5, 0),
                             {.hyperband = false, .most_runs = 1000, .runs = 1, .batch = 7, .patience = 100});
  EXPECT_EQ(found.trials.size(), space.size());
  EXPECT_EQ(found.best->point, 5U);
}

// Of 360 runs 72 are left for the last eight: 3 more each, then 6 for four, 12 for two.
TEST(Tuner, TheLastPointsAreComparedInMoreRuns) {
  const Space space = tuccl_space();
  const Tuning found = tuned(space, Bowl(space, 700, 0.05), {.seed = 1, .most_runs = 360, .patience = 360});
  EXPECT_LE(found.runs, 360);
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->runs, 4 + 3 + 6 + 12);
  const auto with = [&](int runs) {
    return std::ranges::count_if(found.trials, [&](const Trial& trial) { return trial.runs == runs; });
  };
  EXPECT_EQ(with(4 + 3), 4);
  EXPECT_EQ(with(4 + 3 + 6), 2);
  EXPECT_EQ(with(4 + 3 + 6 + 12), 2);
}

TEST(Tuner, HyperbandsBrackets) {
  // s_max = 2: ceil(3/3 9) = 9 points of 1 run, 3 of 3, 1 of 9; ceil(3/2 3) = 5 of 3, 1 of 9; 3 of 9.
  const Space space = tuccl_space();
  const Tuning found = tuned(space, Bowl(space, 0, 0.01),
                             {.estimator = false, .most_runs = 9 + 6 + 6 + 15 + 6 + 27, .runs = 9, .eta = 3});
  ASSERT_EQ(found.trials.size(), 17U);
  EXPECT_EQ(found.runs, 69);
  const auto with = [&](int runs) {
    return std::ranges::count_if(found.trials, [&](const Trial& trial) { return trial.runs == runs; });
  };
  EXPECT_EQ(with(1), 6);
  EXPECT_EQ(with(3), 2 + 4);
  EXPECT_EQ(with(9), 1 + 1 + 3);
}

TEST(Tuner, GoesOnAfterAStopAsIfThereWasNone) {
  const Space space = tuccl_space();
  const TuneOptions options{.seed = 3, .most_runs = 150};
  const Bowl bowl(space, 1000, 0.05);
  const Tuning whole = tuned(space, bowl, options);
  std::vector<Record> saved;
  for (const int stop_after : {1, 40, 100}) {
    Bowl stopped(space, 1000, 0.05);
    stopped.stop_after = stop_after;
    EXPECT_EQ(error_of([&] { tuned(space, stopped, options, saved, &saved); }), "stopped");
    saved = records_from_json(to_json(space, saved, "this one"), space, "this one");
  }
  const Bowl rest(space, 1000, 0.05);
  const Tuning after = tuned(space, rest, options, saved);
  EXPECT_LT(rest.measured(), 20);
  EXPECT_EQ(after.best->point, whole.best->point);
  EXPECT_EQ(after.best->time_us, whole.best->time_us);
  EXPECT_EQ(after.trials.size(), whole.trials.size());
  EXPECT_TRUE(
      has(error_of([&] { records_from_json(to_json(space, saved, "a"), space, "b"); }), "another tuning"));
}

TEST(Tuner, FailuresAreKeptAndNamed) {
  const Space space = tuccl_space();
  Bowl bowl(space, 300, 0);
  bowl.fails = [&](std::size_t point) { return space.value(point, 0) == "Simple"; };
  const Tuning found = tuned(space, bowl, {.runs = 1, .patience = 360});
  EXPECT_EQ(found.best->point, 300U);
  bowl.fails = [](std::size_t) { return true; };
  std::vector<Record> saved;
  EXPECT_TRUE(has(error_of([&] { tuned(space, bowl, {}, {}, &saved); }), "none of 18 points gives a time"));
  EXPECT_EQ(saved.size(), 18U);
}

TEST(Command, FailsHangsAndPrintsNoNumber) {
  const Space space = small_space();
  const auto measured = [&](const std::string& command, const std::string& pattern = "", double unit_us = 1,
                            double timeout_s = 1e6) {
    return make_objective(
               CommandObjective{
                   .command = command, .timeout_s = timeout_s, .unit_us = unit_us, .pattern = pattern},
               space)
        ->measure(space.point("protocol=LL,channels=4,threads=256"), 0, 3);
  };
  EXPECT_EQ(measured("echo {channels} {threads}").time_us, 256);
  EXPECT_EQ(measured("echo took {channels} in 7x; echo done", "took ([0-9]+)", 1e3).time_us, 4000);
  EXPECT_EQ(measured("echo {runs}").time_us, 3);
  EXPECT_EQ(measured("protocol=x; echo ${protocol} 5").time_us, 5);
  EXPECT_TRUE(has(measured("echo 4; exit 3").failure, "ended with code 3"));
  EXPECT_TRUE(has(measured("kill -9 $$").failure, "signal 9"));
  EXPECT_TRUE(has(measured("sleep 1000 | sleep 1000", "", 1, 0.1).failure, "did not end within 0.1 s"));
  EXPECT_TRUE(has(measured("echo nothing").failure, "no number"));
  EXPECT_TRUE(has(measured("echo 5", "took ([0-9]+)").failure, "nothing matches"));
  EXPECT_TRUE(has(measured("echo -5").failure, "no time"));
  EXPECT_TRUE(has(error_of([&] { measured("echo {canals}"); }), "no parameter 'canals'"));
  EXPECT_TRUE(has(error_of([&] { measured("echo", "took"); }), "has no group"));
}

TEST(ExecutorModel, Couplings) {
  const Space space = tuccl_space();
  const auto time_us = [&](double size_bytes, const std::string& point) {
    return ExecutorModel{.size_bytes = size_bytes}.time_us(space, space.point(point));
  };
  // Small messages want low latency, large ones all of the link.
  const std::string rest = ",channels=4,threads=512,buffer_bytes=4194304";
  EXPECT_LT(time_us(1e3, "protocol=LL" + rest), time_us(1e3, "protocol=Simple" + rest));
  EXPECT_LT(time_us(1e9, "protocol=Simple" + rest), time_us(1e9, "protocol=LL" + rest));
  EXPECT_LT(time_us(1e9, "protocol=Simple,channels=4,threads=512,buffer_bytes=524288"),
            time_us(1e9, "protocol=Simple,channels=4,threads=512,buffer_bytes=256"));
  const Space other = space_from_json(parse_json(kSmallSpace, "space"));
  EXPECT_TRUE(has(error_of([&] { make_objective(ExecutorModel{}, other); }), "no parameter 'buffer_bytes'"));
}

}  // namespace
}  // namespace rondo::tuning::test_tuning
