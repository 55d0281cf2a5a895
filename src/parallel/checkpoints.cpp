#include "rondo/parallel/checkpoints.hpp"

#include "rondo/parallel/messages.hpp"

namespace rondo {

std::optional<Bytes> Checkpoints::newest(const Communicator& communicator, const std::string& name) {
  if (!store_.newest) return std::nullopt;
  const Bytes found = on_root(communicator, [&] {
    const std::optional<Bytes> state = store_.newest(prefix_ + name);
    MessageWriter message;
    message.put(state.has_value());
    if (state) message.put_all(*state);
    return message.take();
  });
  MessageReader message(found);
  if (!message.get<bool>()) return std::nullopt;
  resumed_.push_back(prefix_ + name);
  return message.get_all<Bytes>();
}

bool Checkpoints::offer(const Communicator& communicator, const std::string& name,
                        const std::function<Bytes()>& state) {
  // Clocks differ between ranks: all of them go by the largest.
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
