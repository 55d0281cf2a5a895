#include "interrupt.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "rondo/core/error.hpp"

namespace rondo::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM};
constexpr double kSameSignalSeconds = 0.5;

std::atomic<bool> interrupted{false};
std::atomic<int> cause_of_stop{0};
std::atomic<int> first_signal{0};  ///< that somebody sent
std::atomic<double> first_at_s{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
                  std::atomic<double>::is_always_lock_free,
              "a signal handler sets them");

double now_s() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

extern "C" void stop_or_exit(int signal) {
  const bool stopping = interrupted.exchange(true);
  if (!stopping) {
    cause_of_stop.store(signal);
    alarm(InterruptGuard::kGraceSeconds);
  }
  if (signal == SIGALRM) {  // the deadline, or the end of the grace
    if (stopping) _exit(static_cast<int>(ExitCode::stopped));
    return;
  }
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    first_at_s.store(now_s());
    return;
  }
  const bool same_again = signal == first_signal.load() && now_s() - first_at_s.load() < kSameSignalSeconds;
  if (!same_again) _exit(static_cast<int>(ExitCode::stopped));
}

void install(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) sigaddset(&action.sa_mask, signal);
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

extern "C" void exit_stopped(int) {
  _exit(static_cast<int>(ExitCode::stopped));
}

std::atomic<void (*)(int)> handler_outside{SIG_DFL};  ///< of every guard

}  // namespace

void exit_at_signals() {
  handler_outside = exit_stopped;
  install(exit_stopped, 0);
}

void ignore_signals() {
  install(SIG_IGN, 0);
}

InterruptGuard::InterruptGuard() {
  interrupted.store(false);
  cause_of_stop.store(0);
  first_signal.store(0);
  install(stop_or_exit, SA_RESTART);
}

InterruptGuard::~InterruptGuard() {
  alarm(0);
  install(handler_outside, 0);
}

const std::atomic<bool>& InterruptGuard::flag() const {
  return interrupted;
}

void InterruptGuard::stop_in(double seconds) const {
  constexpr double kMost = 1e8;  // years
  alarm(static_cast<unsigned>(std::clamp(std::ceil(seconds), 1.0, kMost)));
}

int InterruptGuard::cause() {
  return cause_of_stop.load();
}

std::string InterruptGuard::describe(int cause) {
  switch (cause) {
    case SIGALRM:
      return "the time limit of the run";
    case SIGINT:
      return "signal INT";
    case SIGTERM:
      return "signal TERM";
    case SIGUSR1:
      return "signal USR1";
    default:
      return "a signal";
  }
}

}  // namespace rondo::cli
