#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rondo/catalogue/folder.hpp"

namespace rondo::catalogue {

class Replays;

/// A schedule of the catalogue at any size, on the series' fabric; without a bound. Throws Error(unavailable)
/// where it does not work there.
ProvenSchedule timed_at(const Folder& folder, const Series& series, const std::string& schedule,
                        double size_bytes);

/// A border, and the schedule that begins there.
struct Crossing {
  Border border;
  std::string schedule;
};

/// The name under which guesses of its times are remembered.
std::string guessed(const std::string& schedule);

/// What schedules of a catalogue take for a series at any size; replayed, and remembered.
class Times {
 public:
  /// `replays`: several may share what they have ready.
  Times(const Folder& folder, const Series& series, std::shared_ptr<Replays> replays = nullptr);

  /// Infinity where it does not work there.
  double finish_us(const std::string& schedule, double size_bytes);
  /// That, before the replay has looked at it: to see where to look.
  double guess_us(const std::string& schedule, double size_bytes);
  bool is_known(const std::string& schedule, double size_bytes) const {
    return finish_.contains({schedule, size_bytes});
  }
  /// Called with every time that was not known; with a guess by guessed() of the schedule.
  void tell_found(std::function<void(const std::string&, double, double)> tell) { tell_ = std::move(tell); }
  /// What another rank has found.
  void remember(const std::string& schedule, double size_bytes, double finish_us);
  /// Where `larger` begins to be the better one, if `smaller` is no later at `from_bytes` and `larger` no
  /// later at `to_bytes`: to 1/256, or to the byte, or
  /// as near as one of them works. Probes where the times would cross if they were linear in the size.
  Border border(const std::string& smaller, double from_bytes, const std::string& larger, double to_bytes);
  /// That border, or, where one of `others` is earlier there than both, the borders to it and from it, and so
  /// on, each of them once. By size; the last schedule is `larger`.
  std::vector<Crossing> crossings(const std::string& smaller, double from_bytes, const std::string& larger,
                                  double to_bytes, std::vector<std::string> others);

 private:
  double known_or(const std::string& name, double size_bytes, const std::function<double()>& find);
  std::string earlier_at(const Border& border, const std::vector<std::string>& others);

  std::string fabric_;
  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<Replays> replays_;
  std::map<std::pair<std::string, double>, double> finish_;
  std::function<void(const std::string&, double, double)> tell_;
};

}  // namespace rondo::catalogue
