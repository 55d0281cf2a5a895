#include "rondo/catalogue/times.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "replaying.hpp"
#include "rondo/core/error.hpp"

namespace rondo::catalogue {
namespace {

/// Borders are found to this ratio, or to the byte.
constexpr double kBorderRatio = 1 + 1.0 / 256;
/// What does not work at a size at all is later than anything.
constexpr double kNever = 1e300;
/// After so many probes by lines times bend there too much, and what is left is halved, by the ratio.
constexpr int kMostLines = 6;

/// Where two schedules take equally long if their times are linear in the size, as those of one order mostly
/// are; not quite as near to an end as borders are found, so that the next probe can be the last. `below_us`,
/// `above_us`: how much later the one of smaller sizes is.
double probe_between(double below, double below_us, double above, double above_us) {
  constexpr double kStep = 1 + (kBorderRatio - 1) * 0.9;
  const double slope = (above_us - below_us) / (above - below);
  const bool is_linear = std::isfinite(slope) && slope > 0;
  if (!is_linear || above / below < kStep * kStep) return std::sqrt(below * above);
  return std::clamp(below - below_us / slope, below * kStep, above / kStep);
}

/// The last size of `smaller` and the first of `larger`, by what they take.
std::pair<double, double> narrowed(const std::string& smaller, double from_bytes, const std::string& larger,
                                   double to_bytes,
                                   const std::function<double(const std::string&, double)>& time_us) {
  double below = from_bytes;
  double above = to_bytes;
  double below_us = time_us(smaller, below) - time_us(larger, below);
  double above_us = time_us(smaller, above) - time_us(larger, above);
  bool was_below = false;
  for (int probes = 1; above - below > 1 && above / below > kBorderRatio; ++probes) {
    const double probe =
        probes <= kMostLines ? probe_between(below, below_us, above, above_us) : std::sqrt(below * above);
    const double size_bytes = std::clamp(std::floor(probe), std::floor(below) + 1,
                                         std::max(std::ceil(above) - 1, std::floor(below) + 1));
    if (size_bytes <= below || size_bytes >= above) break;
    const double of_smaller_us = time_us(smaller, size_bytes);
    const double of_larger_us = time_us(larger, size_bytes);
    // Orders of sums may not work in between: then the border is proven where they do.
    if (!std::isfinite(std::min(of_smaller_us, of_larger_us))) break;
    const double later_us = of_smaller_us - of_larger_us;
    const bool is_below = !is_earlier(of_larger_us, of_smaller_us);  // rounding decides nothing
    // The Illinois method: an end that stays counts half, so that probes do not creep along from the other.
    if (probes > 1 && is_below == was_below) (is_below ? above_us : below_us) /= 2;
    was_below = is_below;
    (is_below ? below : above) = size_bytes;
    (is_below ? below_us : above_us) = later_us;
  }
  return {below, above};
}

}  // namespace

ProvenSchedule timed_at(const Folder& folder, const Series& series, const std::string& schedule,
                        double size_bytes) {
  Replayed there =
      replayed_at(schedule, *folder.schedule(schedule), *folder.fabric(series.fabric), size_bytes);
  if (!there.schedule) throw Error(ExitCode::unavailable, there.why_not);
  return *std::move(there.schedule);
}

Times::Times(const Folder& folder, const Series& series, std::shared_ptr<Replays> replays)
    : fabric_(series.fabric),
      topology_(folder.fabric(series.fabric)),
      replays_(replays ? std::move(replays) : std::make_shared<Replays>(folder)) {}

std::string guessed(const std::string& schedule) {
  return "~" + schedule;
}

double Times::known_or(const std::string& name, double size_bytes, const std::function<double()>& find) {
  const auto key = std::pair(name, size_bytes);
  if (const auto found = finish_.find(key); found != finish_.end()) return found->second;
  const double us = find();
  finish_[key] = us;
  if (tell_) tell_(name, size_bytes, us);
  return us;
}

double Times::finish_us(const std::string& schedule, double size_bytes) {
  return known_or(schedule, size_bytes,
                  [&] { return replays_->finish_us(schedule, fabric_, topology_, size_bytes); });
}

double Times::guess_us(const std::string& schedule, double size_bytes) {
  return known_or(guessed(schedule), size_bytes,
                  [&] { return replays_->guess_us(schedule, fabric_, topology_, size_bytes); });
}

void Times::remember(const std::string& schedule, double size_bytes, double finish_us) {
  finish_.try_emplace({schedule, size_bytes}, finish_us);
}

Border Times::border(const std::string& smaller, double from_bytes, const std::string& larger,
                     double to_bytes) {
  auto [below, above] =
      narrowed(smaller, from_bytes, larger, to_bytes,
               [&](const std::string& name, double bytes) { return guess_us(name, bytes); });
  const bool is_as_guessed = !is_earlier(finish_us(larger, below), finish_us(smaller, below)) &&
                             !is_earlier(finish_us(smaller, above), finish_us(larger, above));
  if (!is_as_guessed) {
    std::tie(below, above) =
        narrowed(smaller, from_bytes, larger, to_bytes,
                 [&](const std::string& name, double bytes) { return finish_us(name, bytes); });
  }
  // Rounding decides nothing.
  const auto other = [&](const std::string& schedule, double size_bytes, double not_less_us) {
    const double other_us = finish_us(schedule, size_bytes);
    return std::isfinite(other_us) ? std::max(other_us, not_less_us) : kNever;
  };
  Border border{.below_bytes = below, .above_bytes = above};
  border.below_us = finish_us(smaller, below);
  border.below_other_us = other(larger, below, border.below_us);
  border.above_us = finish_us(larger, above);
  border.above_other_us = other(smaller, above, border.above_us);
  return border;
}

/// The earliest where the border ends, if it is earlier there than the two that meet; empty: none.
std::string Times::earlier_at(const Border& border, const std::vector<std::string>& others) {
  std::string earliest;
  double least_us = std::min(border.above_us, border.above_other_us);
  for (const std::string& name : others) {
    if (!is_earlier(guess_us(name, border.above_bytes), least_us)) continue;
    const double there_us = finish_us(name, border.above_bytes);
    if (!is_earlier(there_us, least_us)) continue;
    earliest = name;
    least_us = there_us;
  }
  return earliest;
}

std::vector<Crossing> Times::crossings(const std::string& smaller, double from_bytes,
                                       const std::string& larger, double to_bytes,
                                       std::vector<std::string> others) {
  std::vector<Crossing> found{{border(smaller, from_bytes, larger, to_bytes), larger}};
  for (std::size_t b = 0; b < found.size();) {
    const std::string before = b == 0 ? smaller : found[b - 1].schedule;
    const std::string after = found[b].schedule;
    const std::string between = earlier_at(found[b].border, others);
    if (between.empty()) {
      ++b;
      continue;
    }
    std::erase(others, between);
    const double first = b == 0 ? from_bytes : found[b - 1].border.above_bytes;
    const double middle = found[b].border.above_bytes;
    const double last = b + 1 == found.size() ? to_bytes : found[b + 1].border.below_bytes;
    // As border() asks.
    if (finish_us(before, first) > finish_us(between, first) ||
        finish_us(after, last) > finish_us(between, last))
      continue;
    found[b] = {border(between, middle, after, last), after};
    found.insert(found.begin() + static_cast<std::ptrdiff_t>(b),
                 {border(before, first, between, middle), between});
  }
  return found;
}

}  // namespace rondo::catalogue
