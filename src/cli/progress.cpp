#include "progress.hpp"

#include <unistd.h>

#include <iostream>

namespace rondo::cli {
namespace {

constexpr std::chrono::seconds kBetweenLines{5};
constexpr const char* kRewriteLine = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && shown_) std::cerr << kRewriteLine << std::flush;
}

void ProgressLine::show(const std::string& line) {
  if (terminal_) {
    std::cerr << kRewriteLine << line << std::flush;
  } else if (Clock::now() >= next_) {
    std::cerr << line << '\n';
    next_ = Clock::now() + kBetweenLines;
  }
  shown_ = true;
}

}  // namespace rondo::cli
