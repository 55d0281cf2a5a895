#include "outcome.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

Bytes on_root(const Communicator& communicator, const std::function<Bytes()>& work) {
  MessageWriter message;
  if (communicator.is_root()) put_outcome(message, run_guarded(work));
  const Bytes received = communicator.broadcast(message.take(), 0);
  MessageReader reader(received);
  Outcome outcome = get_outcome(reader);
  if (outcome.error) throw *outcome.error;
  return std::move(outcome.value);
}

}  // namespace rondo
