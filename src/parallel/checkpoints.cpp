#include "rondo/parallel/checkpoints.hpp"

#include "rondo/parallel/messages.hpp"

namespace rondo {

std::optional<Bytes> Checkpoints::newest(const Communicator& communicator, const std::string& name) {
  if (!store_.newest) return std::nullopt;
  const Bytes message = on_root(communicator, [&] { return to_message(store_.newest(prefix_ + name)); });
  const auto found = from_message<std::optional<Bytes>>(message);
  if (found) resumed_.push_back(prefix_ + name);
  return found;
}

bool Checkpoints::offer(const Communicator& communicator, const std::string& name,
                        const std::function<Bytes()>& state) {
  // Clocks differ between ranks: all use the largest.
  if (!store_.keep || communicator.max(since_last_.seconds()) < every_s_) return false;
  keep(communicator, name, state);
  return true;
}

void Checkpoints::keep(const Communicator& communicator, const std::string& name,
                       const std::function<Bytes()>& state) {
  if (!store_.keep) return;
  const Stopwatch clock;
  const Bytes bytes = state();
  on_root(communicator, [&] {
    store_.keep(prefix_ + name, bytes);
    return Bytes{};
  });
  seconds_ += clock.seconds();
  since_last_ = {};
}

}  // namespace rondo
