#include "interrupt.hpp"

#include <csignal>

namespace rondo::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

extern "C" void set_interrupted(int) {
  interrupted.store(true);
}

void install(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted.store(false);
  install(set_interrupted, SA_RESTART | static_cast<int>(SA_RESETHAND));
}

InterruptGuard::~InterruptGuard() {
  install(SIG_DFL, 0);
}

const std::atomic<bool>& InterruptGuard::flag() const {
  return interrupted;
}

}  // namespace rondo::cli
