#pragma once

#include <chrono>
#include <string>

namespace rondo::cli {

/// Progress on standard error: one line that is written over on a terminal, a line every few seconds
/// elsewhere. For the root rank.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  ///< clears the line on a terminal
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool shown_ = false;
  Clock::time_point next_ = Clock::now();
};

}  // namespace rondo::cli
