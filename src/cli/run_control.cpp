#include "run_control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "rondo/core/error.hpp"
#include "rondo/core/numbers.hpp"
#include "rondo/pipeline/registry.hpp"

namespace rondo::cli {
namespace {

constexpr const char* kJobEnd = "SLURM_JOB_END_TIME";
constexpr double kInfiniteSeconds = std::numeric_limits<double>::infinity();

/// A twentieth of what is left of the job, within a quarter of a minute and two minutes.
double margin_s(double left_s) {
  return std::clamp(left_s / 20, 15.0, 120.0);
}

/// Infinite outside of a job, and where the batch system gives no such figure.
double job_seconds_left() {
  const char* text = std::getenv(kJobEnd);
  if (text == nullptr) return kInfiniteSeconds;
  std::int64_t end_s = 0;
  const auto [stop, error] = std::from_chars(text, text + std::strlen(text), end_s);
  if (error != std::errc{} || *stop != '\0' || end_s <= 0) return kInfiniteSeconds;
  const auto now_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double left_s = static_cast<double>(end_s) - now_s;
  return left_s - margin_s(left_s);
}

}  // namespace

OptionGroup run_control_options() {
  return {
      "Run (no part of the result)",
      {{"max-hours", "H", "",
        "stop after so many hours with a whole state and exit code 75; in a Slurm job always in time before "
        "its end (SLURM_JOB_END_TIME)"},
       {"checkpoint-every", "S", "60",
        "seconds between two states of a long search, rounds are kept each; never: nothing is kept before "
        "the "
        "result"}}};
}

RunControl read_run_control(const Settings& settings) {
  RunControl control;
  if (settings.has("max-hours")) control.max_hours = settings.positive("max-hours");
  if (settings.text("checkpoint-every") == "never") {
    control.checkpoint_every_s = kInfiniteSeconds;
    return control;
  }
  control.checkpoint_every_s = parse_number(settings.text("checkpoint-every"), "--checkpoint-every");
  if (control.checkpoint_every_s < 0) {
    throw Error(ExitCode::usage,
                fmt::format("--checkpoint-every is {}; it has to be 0 or more seconds, or never",
                            settings.text("checkpoint-every")));
  }
  return control;
}

std::string why_interval_ignored(const RunControl& control, const SolveOptions& options, bool is_unicast) {
  const bool only_rounds =
      find_engine_or_auto(options.engine).works_in_rounds && options.rounds.start == RoundsStart::none;
  const bool bound_has_states = is_unicast && options.lp_solver != "clp";
  if (!only_rounds || bound_has_states || control.checkpoint_every_s == kInfiniteSeconds) return "";
  return "rounds without a plan have no other states than the rounds, which are kept each; give never, or "
         "leave it out";
}

std::optional<double> seconds_left(const RunControl& control, const Communicator& communicator) {
  const double asked_s = control.max_hours ? *control.max_hours * 3600 : kInfiniteSeconds;
  // Every rank has its own clock; the one in the greatest hurry counts.
  const double left_s = -communicator.max(-std::min(asked_s, job_seconds_left()));
  if (left_s == kInfiniteSeconds) return std::nullopt;
  return std::max(left_s, 0.0);
}

}  // namespace rondo::cli
